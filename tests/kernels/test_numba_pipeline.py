"""Pieces of kernels become code where they are called, and only there; the collector of cycles waits meanwhile."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.codegen import CPUCodeLibrary

from deepforecast.kernels.compilation import hot, inner, inner_no_alloc
from deepforecast.kernels.numba_pipeline import KernelCompiler

ALL = """
import numpy as np, pandas as pd
import deepforecast, sys

n, random = 60, np.random.default_rng(0)
y = 100 + 10 * np.sin(np.arange(n) * np.pi / 6) + random.normal(size=n)
holes, demand = np.where(random.random(n) < 0.1, np.nan, y), np.where(random.random(n) < 0.4, random.integers(1, 9, n), 0.0)

def run(name, y, **parameters):
    model = getattr(deepforecast, name)(horizon=12, **parameters)
    frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2000-01-01", periods=n, freq="MS"), "y": y})
    model.fit(frame).predict(level=80)
    model.predict(frame=frame.head(50).assign(y=frame["y"].head(50).to_numpy(copy=True)))
    model.fitted_values()

for name in ("SES", "HoltWinters", "AutoETS", "ARIMA", "AutoARIMA"):
    run(name, holes)
    run(name, y)
for name in ("AutoTheta", "DynamicTheta", "AutoCES", "MSTL"):
    run(name, y)
for name in ("Croston", "TSB", "ADIDA", "IMAPA"):
    run(name, demand)
for room, module in sorted(sys.modules.items()):
    for name, one in vars(module).items() if room.startswith("deepforecast.kernels") else ():
        if getattr(one, "__module__", "") == room and len(getattr(one, "signatures", ())) > 1:
            print(room, name, *one.signatures, sep="; ")
"""


def doubled(kind):
    """A kernel that calls a piece of a kind."""

    def double(values, at):
        return values[at] * 2.0

    piece = kind(double)

    def total(values):
        found = 0.0
        for at in range(len(values)):
            found += piece(values, at)
        return found

    return piece, numba.njit(pipeline_class=KernelCompiler, error_model="numpy")(total)


@pytest.mark.parametrize("kind", [inner, inner_no_alloc, hot])
def test_a_piece_has_no_code_of_its_own_and_is_part_of_what_calls_it(kind):
    piece, kernel = doubled(kind)
    assert kernel(np.arange(4.0)) == 12.0
    (made,) = piece.overloads.values()
    symbol = made.fndesc.llvm_func_name
    assert not made.library._codegen._engine.is_symbol_defined(symbol)
    (whole,) = kernel.overloads.values()
    assert whole.library._codegen._engine.is_symbol_defined(whole.fndesc.llvm_func_name)


@pytest.mark.parametrize(("kind", "optimised"), [(inner_no_alloc, ["total"]), (hot, ["double", "total"])])
def test_only_a_hot_piece_is_optimised_by_itself(kind, optimised, monkeypatch):
    seen = []
    whole = CPUCodeLibrary._optimize_final_module
    monkeypatch.setattr(CPUCodeLibrary, "_optimize_final_module", lambda self: (seen.append(self.name), whole(self))[1])
    _, kernel = doubled(kind)
    kernel(np.arange(4.0))
    assert [name.split(".")[-1] for name in seen if "doubled" in name] == optimised


def test_the_collector_waits_while_a_kernel_is_compiled_and_is_left_as_it_was(monkeypatch):
    seen = []
    found = KernelCompiler.define_pipelines
    monkeypatch.setattr(KernelCompiler, "define_pipelines", lambda self: (seen.append(gc.isenabled()), found(self))[1])
    assert gc.isenabled()
    _, kernel = doubled(inner_no_alloc)
    kernel(np.arange(3.0))
    assert gc.isenabled()
    assert seen == [False, False]
    gc.disable()
    try:
        _, kernel = doubled(inner_no_alloc)
        kernel(np.arange(3.0))
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.slow
def test_every_kernel_is_compiled_for_one_kind_of_arguments(tmp_path):
    held = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", ALL], capture_output=True, text=True, env=held, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
