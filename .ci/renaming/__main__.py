"""Rename modules, classes, functions, attributes, arguments and local variables everywhere, as tables say."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import mutants
from sources import Source, read_project
from tables import Table
from texts import Plan
from types_of import Types


def main(arguments: list[str] | None = None) -> int:
    """The command. Exit status 1: the tables have errors, and nothing was written."""
    options = command_line().parse_args(arguments)
    root = options.root.resolve()
    table = Table()
    for path in options.tables:
        table.add(path)
    start = time.process_time()
    sources, texts = read_project(root)
    note_mirrored_tests(table, sources)
    plan = Plan(root, table, sources, texts)
    plan.read_members(Types(root, sources, options.cache or root / "build" / "rename-cache"))
    plan.read_names()
    try:
        plan.follow_fixtures()
        plan.edit()
        plan.edit_strings()
        mutants.follow(plan)
        plan.edit_texts()
    except ValueError as conflict:  # one name becomes two
        plan.errors.append(str(conflict))
    plan.check()
    if not plan.errors:
        mutants.check(plan)
    for error in dict.fromkeys(plan.errors):
        print(f"error: {error}", file=sys.stderr)
    if plan.errors:
        print(f"{len(set(plan.errors))} errors: nothing is written", file=sys.stderr)
        return 1
    files = [
        each for each in [*sources, *texts] if each.edits and getattr(each, "host", None) is None
    ]
    counts = f"{len(table)} entries, {sum(len(each.edits) for each in files)} edits in {len(files)} files"
    if options.dry_run:
        for each in files:
            print(f"{each.path.relative_to(root)}: {len(each.edits)}")
    else:
        write(plan)
    report(plan)
    print(f"{counts}, {time.process_time() - start:.0f} s")
    return 0


def command_line() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(prog=".ci/rename", description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path, metavar="TABLE.yaml")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the top of the checkout")
    parser.add_argument(
        "--cache", type=Path, help="folder in which mypy keeps what it knows of other packages"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="write nothing; count the edits of each file"
    )
    return parser


def note_mirrored_tests(table: Table, sources: list[Source]) -> None:
    """The tests of a module move with it, if they are in tests/<package>/test_<module>.py and nothing is there yet."""
    modules = {source.module for source in sources}
    for old, new in list(table.modules.items()):
        tests, target = (
            f"tests.{package}.test_{stem.lstrip('_')}"
            for package, stem in map(_room_and_stem, (old, new))
        )
        if old.count(".") > 1 and tests in modules and target not in modules and tests != target:
            table.modules.setdefault(tests, target)


def _room_and_stem(module: str) -> tuple[str, str]:
    package, _, stem = module.partition(".")[2].rpartition(".")
    return package, stem


def write(plan: Plan) -> None:
    """Write the edits, move the files, and bring what is generated and the order of imports up to date."""
    written = []
    for each in [*plan.sources, *plan.texts]:
        if each.edits and getattr(each, "host", None) is None:
            each.path.write_bytes(each.changed().encode())
            written.append(each.path)
    for old, new in plan.moved_paths.items():
        if old != new and (plan.root / old).exists():
            (plan.root / new).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "mv", old, new], cwd=plan.root, check=True)
    names = [
        path.relative_to(plan.root).as_posix() for path in written if path.suffix in (".py", ".pyi")
    ]
    python = [str(plan.root / plan.moved_paths.get(name, name)) for name in names]
    generator = plan.new_module("deepforecast.testing.index")
    if "deepforecast.testing.index" in plan.modules:
        environment = os.environ | {"PYTHONPATH": str(plan.root)}
        command = [sys.executable, "-m", generator]
        done = subprocess.run(
            command, cwd=plan.root, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            plan.by_hand[f"python -m {generator} failed"].append(done.stderr.strip()[-500:])
    ruff = [sys.executable, "-m", "ruff", "check", "--quiet"]
    if importlib.util.find_spec("ruff") and python:
        subprocess.run([*ruff, "--select", "I", "--fix", *python], cwd=plan.root)
        command = [*ruff, "--select", "E501", "--output-format", "concise", *python]
        too_long = subprocess.run(command, cwd=plan.root, capture_output=True, text=True)
        plan.by_hand["Lines that are too long now"] += too_long.stdout.splitlines()


def report(plan: Plan) -> None:
    """Print what a person has to look at."""
    for old, new in getattr(plan, "moved_paths", {}).items():
        print(f"moved: {old} -> {new}")
    for heading, lines in plan.by_hand.items():
        if lines:
            print(f"\n{heading} ({len(set(lines))}):")
            print("\n".join(f"  {line}" for line in dict.fromkeys(lines)))


if __name__ == "__main__":
    gc.disable()  # nothing of what mypy builds is freed before the end
    status = main()
    sys.stdout.flush()
    os._exit(status)  # freeing what mypy built takes longer than its work
