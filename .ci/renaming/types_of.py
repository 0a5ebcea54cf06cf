"""The types that mypy finds: of the receivers of attributes, and of what is called."""

from __future__ import annotations

import ast
import sys
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

from mypy import build, nodes, types
from mypy.modulefinder import BuildSource
from mypy.options import Options
from sources import SEARCH_PATHS, Source

UNTYPED = (  # without annotations, or too large to follow: their values are Any
    *(
        "joblib",
        "threadpoolctl",
        "plotly",
        "scipy",
        "sklearn",
        "statsmodels",
        "tqdm",
        "pyarrow",
        "pandas",
        "safetensors",
    ),
    *(
        "numba",
        "skops",
        "onnx",
        "onnxruntime",
        "onnxscript",
        "yaml",
        "rdata",
        "matplotlib",
        "lightgbm",
        "xgboost",
    ),
    *("catboost", "optuna", "hypothesis", "pytorch_lightning", "torchmetrics"),
)
Span = tuple[int, int, int, int]


class Types:
    """Types of expressions, and the classes of the project, from one run of mypy.

    mypy does not say of an expression in which file it is. So lines are numbered through all files: each one is preceded by
    as many empty lines as those before it have.
    """

    def __init__(self, root: Path, sources: list[Source], cache: Path) -> None:
        stubbed = {source.module for source in sources if source.path.suffix == ".pyi"}
        checked = [
            source
            for source in sources
            if source.path.suffix == ".pyi" or source.module not in stubbed
        ]
        ends = list(accumulate(len(source.lines) + 1 for source in checked))
        starts = [0, *ends]
        built = _build(root, cache, [(source, starts[i]) for i, source in enumerate(checked)])
        self._types: dict[Source, dict[Span, types.Type]] = {source: {} for source in checked}
        infos = {
            class_info
            for source in checked
            for class_info in _classes(built.files[source.module].names, source.module)
        }
        for node, expression_type in built.types.items():
            i = bisect_left(ends, node.line)
            if i >= len(checked) or node.end_line is None:
                continue
            span = (
                node.line - starts[i],
                node.column,
                node.end_line - starts[i],
                node.end_column or 0,
            )
            self._types[checked[i]][span] = expression_type
            proper = types.get_proper_type(expression_type)
            if isinstance(proper, types.Instance):
                infos.add(proper.type)
            elif isinstance(proper, types.FunctionLike) and proper.is_type_obj():
                infos.add(proper.type_object())
        places = {
            source.module: starts[i] for i, source in enumerate(checked) if source.host is None
        }
        self.infos = {  # by module and line
            (
                class_info.module_name,
                class_info.defn.line - places[class_info.module_name],
            ): class_info
            for class_info in infos
            if class_info.module_name in places
        }

    def of(self, source: Source, node: ast.expr) -> list[types.ProperType]:
        """The types of an expression, those of a union apart and None left out; `AnyType` alone where it has none."""
        expression_type = self._types.get(source, {}).get(span_of(node))
        return (
            [types.AnyType(types.TypeOfAny.unannotated)]
            if expression_type is None
            else list(flat(expression_type))
        )


def _classes(names: nodes.SymbolTable, outer: str) -> Iterable[nodes.TypeInfo]:
    for name, symbol in names.items():
        if isinstance(symbol.node, nodes.TypeInfo) and symbol.node.fullname == f"{outer}.{name}":
            yield symbol.node
            yield from _classes(symbol.node.names, symbol.node.fullname)


def span_of(node: ast.expr) -> Span:
    """The position of an expression as mypy has it."""
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def flat(mypy_type: types.Type) -> Iterable[types.ProperType]:
    """The types of a union, or the one there is; without None, and the bound in place of a type variable."""
    proper = types.get_proper_type(mypy_type)
    if isinstance(proper, types.UnionType):
        for each in proper.items:
            yield from flat(each)
    elif isinstance(proper, types.TypeVarType):
        if proper.values:
            for each in proper.values:
                yield from flat(each)
        else:
            yield from flat(proper.upper_bound)
    elif not isinstance(proper, types.NoneType | types.UninhabitedType):
        yield proper


def instance_of(mypy_type: types.ProperType) -> nodes.TypeInfo | None:
    """The class of which the value is, or the class itself where the value is a class."""
    if isinstance(mypy_type, types.Instance):  # object says nothing
        return None if mypy_type.type.fullname == "builtins.object" else mypy_type.type
    if isinstance(mypy_type, types.TupleType):
        return mypy_type.partial_fallback.type
    if isinstance(mypy_type, types.TypedDictType | types.LiteralType):
        return mypy_type.fallback.type
    if isinstance(mypy_type, types.TypeType):
        inner = next(iter(flat(mypy_type.item)), None)
        return None if inner is None else instance_of(inner)
    if isinstance(mypy_type, types.FunctionLike) and mypy_type.is_type_obj():
        return mypy_type.type_object()
    return None


def definition_of(mypy_type: types.ProperType) -> nodes.SymbolNode | None:
    """The function that a value is."""
    return mypy_type.definition if isinstance(mypy_type, types.CallableType) else None


def _build(root: Path, cache: Path, sources: list[tuple[Source, int]]) -> build.BuildResult:
    options = Options()
    options.export_types = True
    options.check_untyped_defs = True
    options.incremental = (
        True  # other packages come from the cache; a source with a text never does
    )
    options.cache_dir = str(cache)
    options.ignore_missing_imports = True
    options.follow_imports = "silent"
    options.namespace_packages = True
    options.explicit_package_bases = True
    options.python_version = sys.version_info[:2]
    options.python_executable = sys.executable
    options.mypy_path = [str(root), *(str(root / folder) for folder in SEARCH_PATHS)]
    for package in UNTYPED:
        for pattern in (package, f"{package}.*"):
            options.per_module_options[pattern] = {
                "follow_imports": "skip",
                "ignore_missing_imports": True,
            }
    options.build_per_module_cache()
    inputs = []
    for each, blank in sources:
        path = (
            each.path
            if each.host is None
            else each.path.with_name(each.module.rpartition(".")[2] + ".py")
        )
        inputs.append(BuildSource(str(path), each.module, "\n" * blank + each.text, followed=False))
    return build.build(inputs, options)
