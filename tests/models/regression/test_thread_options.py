"""Threads of boosted trees: those of `options`, else what machine and OMP_NUM_THREADS allow."""

from __future__ import annotations

from typing import Any

import pytest

from deepforecast import LightGBM
from deepforecast.core import threads
from deepforecast.datasets import generate
from deepforecast.models.regression import _boosting_base

lightgbm = pytest.importorskip("lightgbm")
FRAME = generate(2, 80)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The number of threads passed to LightGBM, by call."""
    train, predict, numbers = lightgbm.train, lightgbm.Booster.predict, dict[str, Any]()

    def training(options: Any, *given: Any, **more: Any) -> Any:
        numbers["fit"] = options["num_threads"]
        assert not {"n_jobs", "nthread"} & set(options), "one name: LightGBM passes over the others"
        return train(options, *given, **more)

    def predicting(self: Any, *given: Any, **more: Any) -> Any:
        numbers["explain" if more.get("pred_contrib") else "predict"] = more["num_threads"]
        return predict(self, *given, **more)

    monkeypatch.setattr(lightgbm, "train", training)
    monkeypatch.setattr(lightgbm.Booster, "predict", predicting)
    monkeypatch.setattr(threads, "available_cpus", lambda: 2)
    return numbers


def every_call(**given: Any) -> None:
    model = LightGBM(horizon=3, n_estimators=3, **given).fit(FRAME)
    model.predict()
    model.explain()


@pytest.mark.parametrize(
    ("variable", "options", "wanted"),
    [
        ("", None, 2),
        ("1", None, 1),
        ("1", {"num_threads": 2}, 2),
        ("", {"num_threads": 1}, 1),
        ("", {"n_jobs": 1}, 1),
        ("1", {"num_threads": 0}, 1),
    ],
)
def test_threads_of_every_call(
    variable: str,
    options: dict[str, Any] | None,
    wanted: int,
    used: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    every_call(options=options)
    assert used == {"fit": wanted, "predict": wanted, "explain": wanted}


def test_a_forked_process_uses_one_thread_whatever_options_ask_for(
    used: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (threads, _boosting_base):
        monkeypatch.setattr(module, "is_forked", lambda: True)
    every_call(options={"num_threads": 2})
    assert used == {"fit": 1, "predict": 1, "explain": 1}
