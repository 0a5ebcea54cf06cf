"""Croston, TSB, ADIDA, IMAPA: the published formulas by a plain loop, another library's numbers, and bands of counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import ADIDA, IMAPA, TSB, Croston
from deepforecast.errors import DataError
from deepforecast.plotting import plot_residuals

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "intermittent.json").read_text("utf-8"))
MODELS = {
    "classic": Croston(horizon=1),
    "sba": Croston(horizon=1, variant="sba"),
    "optimized": Croston(horizon=1, variant="optimized"),
    "tsb": TSB(horizon=1, alpha_size=0.2, alpha_probability=0.1),
    "adida": ADIDA(horizon=1),
    "imapa": IMAPA(horizon=1),
}
EVERY = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def panel(series: dict[str, Any]) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"unique_id": name, "ds": pd.date_range("2024-01-01", periods=len(y)), "y": np.asarray(y, np.float64)})
        for name, y in series.items()
    ]
    return pd.concat(parts, ignore_index=True)


def counts(seed: int = 3, n: int = 200, share: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random(n) < share) * (1.0 + rng.poisson(2, n))


def smoothed(values: list[float], alpha: float) -> float:
    level = values[0]
    for value in values[1:]:
        level = alpha * value + (1 - alpha) * level
    return level


def taken_apart(y: np.ndarray) -> tuple[list[float], list[float]]:
    rows = [row for row, value in enumerate(y) if value != 0]
    return [y[row] for row in rows], [row - before for before, row in zip([-1, *rows[:-1]], rows, strict=True)]


@pytest.mark.parametrize("name", MODELS)
def test_forecasts_are_those_of_statsforecast(name: str) -> None:
    found = MODELS[name].clone().fit(panel(GOLDEN["series"]), freq="D").predict().set_index("unique_id").iloc[:, -1]
    wanted = pd.Series(GOLDEN["forecasts"][name]).reindex(found.index)
    if name == "sba":  # theirs is less by the correction for 1 / p, which of a demand in every period takes 5 % for nothing
        wanted["even"] /= 0.95
    if name in ("adida", "imapa"):  # one demand in all: squares are the same for every smoothing parameter
        found, wanted = found.drop("one"), wanted.drop("one")
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", GOLDEN["fitted"])
def test_fitted_values_are_those_of_statsforecast(name: str) -> None:
    found = MODELS[name].clone().fit(panel(GOLDEN["series"]), freq="D").fitted_values()
    for series, theirs in GOLDEN["fitted"][name].items():
        ours = found[found["unique_id"] == series].iloc[:, -1].to_numpy()
        wanted = np.array(theirs, dtype=np.float64)
        known = ~np.isnan(wanted)
        np.testing.assert_allclose(ours[known], wanted[known], rtol=1e-12)
        before = np.cumsum(GOLDEN["series"][series]) - GOLDEN["series"][series] == 0  # no demand yet: ours is 0
        assert np.isnan(ours[0])
        assert (ours[1:][before[1:]] == 0).all()


def test_croston_is_its_published_formula() -> None:
    y = counts()
    sizes, waits = taken_apart(y)
    for alpha in (0.05, 0.3):
        plain = smoothed(sizes, alpha) / smoothed(waits, alpha)
        for variant, factor in (("classic", 1.0), ("sba", 1 - alpha / 2)):
            found = Croston(horizon=1, variant=variant, alpha=alpha).fit(panel({"a": y})).predict()["Croston"][0]
            np.testing.assert_allclose(found, plain * factor, rtol=1e-12)


def test_optimized_croston_has_least_squares() -> None:
    y = counts()
    grid = np.linspace(0.1, 0.3, 2001)

    def best(values: list[float]) -> float:
        def squares(alpha: float) -> float:
            level, total = values[0], 0.0
            for value in values[1:]:
                total += (value - level) ** 2
                level += alpha * (value - level)
            return total

        return float(grid[np.argmin([squares(alpha) for alpha in grid])])

    model = Croston(horizon=1, variant="optimized").fit(panel({"a": y}))
    np.testing.assert_allclose(model.state_.learned["alpha"][0], [best(part) for part in taken_apart(y)], atol=1e-4)


def test_tsb_is_its_published_formula() -> None:
    y = counts()
    probability, size = float(y[0] != 0), 0.0
    for row, value in enumerate(y):
        if value != 0:
            size = value if size == 0 else 0.2 * value + 0.8 * size
        if row:
            probability = 0.1 * (value != 0) + 0.9 * probability
    found = TSB(horizon=1, alpha_size=0.2, alpha_probability=0.1).fit(panel({"a": y})).predict()["TSB"][0]
    np.testing.assert_allclose(found, probability * size, rtol=1e-12)


def test_tsb_falls_while_no_demand_comes_and_croston_stays() -> None:
    y = panel({"a": [*counts(), *np.zeros(50)]})
    before = y.head(200)
    tsb, croston = TSB(horizon=1).fit(before), Croston(horizon=1).fit(before)
    first = tsb.predict()["TSB"][0], croston.predict()["Croston"][0]
    rest = y.tail(50)
    last = tsb.update(rest).predict()["TSB"][0], croston.update(rest).predict()["Croston"][0]
    assert last[0] < 0.9 * first[0]
    assert last[1] == first[1]


def test_blocks_are_the_published_ones() -> None:
    y = counts(n=203)
    _, waits = taken_apart(y)
    width = round(float(np.mean(waits)))

    def blocks(width: int) -> float:
        cut = y[len(y) % width :].reshape(-1, width).sum(axis=1)
        return smoothed(list(cut), 0.2) / width

    adida = ADIDA(horizon=1, alpha=0.2).fit(panel({"a": y})).predict()["ADIDA"][0]
    imapa = IMAPA(horizon=1, alpha=0.2).fit(panel({"a": y})).predict()["IMAPA"][0]
    np.testing.assert_allclose(adida, blocks(width), rtol=1e-12)
    np.testing.assert_allclose(imapa, np.mean([blocks(one) for one in range(1, width + 1)]), rtol=1e-12)
    five = ADIDA(horizon=1, alpha=0.2, aggregation=5).fit(panel({"a": y})).predict()["ADIDA"][0]
    np.testing.assert_allclose(five, blocks(5), rtol=1e-12)


def test_blocks_go_on_where_they_ended() -> None:
    y = panel({"a": counts(n=210)})
    model = ADIDA(horizon=1, alpha=0.2, aggregation=7).fit(y.head(196))
    first = model.predict()["ADIDA"][0]
    model.update(y.iloc[196:202])
    assert model.predict()["ADIDA"][0] == first  # six rows make no block
    model.update(y.iloc[202:203])
    np.testing.assert_allclose(model.predict()["ADIDA"][0], 0.8 * first + 0.2 * y["y"][196:203].mean(), rtol=1e-12)
    assert model.predict(frame=y.head(203))["ADIDA"][0] == model.predict()["ADIDA"][0]
    short = model.predict(frame=y.tail(5))["ADIDA"][0]
    assert short == y["y"].tail(5).mean()


def test_a_block_with_missing_rows_counts_by_the_others() -> None:
    y = np.tile([0.0, 2.0, 4.0, 2.0], 10)
    holed = y.copy()
    holed[[5, 6, 20, 21, 22, 23]] = np.nan
    for model in (ADIDA(horizon=1, aggregation=4), ADIDA(horizon=1, aggregation=4, alpha=0.3)):
        found = model.fit(panel({"a": np.where(np.arange(40) == 41, np.nan, y)})).predict()["ADIDA"][0]
        assert found == 2.0
    with pytest.warns(match="missing"):
        through = ADIDA(horizon=1, aggregation=4, alpha=1.0).fit(panel({"a": holed[:24]})).predict()["ADIDA"][0]
    assert through == 2.0  # the last block holds nothing; the one before is whole


@EVERY
def test_a_missing_value_is_passed_over(model: Any) -> None:
    y = counts(n=120)
    if isinstance(model, (ADIDA, IMAPA)):
        return  # blocks keep their place in time: see above
    holed = np.insert(y, [30, 60, 60], np.nan)
    with pytest.warns(match="missing"):
        through = model.clone().fit(panel({"a": holed})).predict(level=90)
    pd.testing.assert_frame_equal(through.iloc[:, 2:], model.clone().fit(panel({"a": y})).predict(level=90).iloc[:, 2:])


@EVERY
def test_zeros_give_zero_with_zero_width_intervals(model: Any) -> None:
    found = model.clone().fit(panel({"a": np.zeros(120), "b": np.zeros(1)}), freq="D").predict(3, level=[50, 99])
    assert (found.iloc[:, 2:] == 0).all(axis=None)
    assert (model.clone().fit(panel({"a": np.zeros(20)})).simulate(4)[model.name] == 0).all()


@EVERY
def test_intermittent_demand_is_finite_and_in_range(model: Any) -> None:
    rng = np.random.default_rng(0)
    seldom = np.where(rng.random(240) < 0.88, 0.0, rng.integers(1, 6, 240))
    series = {"last": np.eye(120)[119] * 5, "first": np.eye(120)[0] * 5, "one": np.eye(120)[60] * 5, "seldom": seldom}
    found = model.clone().fit(panel(series)).predict(10, level=[80, 95])
    assert np.isfinite(found.iloc[:, 2:]).all(axis=None)
    assert (found.iloc[:, 2:] >= 0).all(axis=None)
    assert (found.iloc[:, 2:] <= 5).all(axis=None)


@EVERY
def test_bands_of_counts_are_counts_and_their_mean_is_the_forecast(model: Any) -> None:
    fitted = model.clone().fit(panel({"a": counts()}))
    found = fitted.predict(2, level=[50, 80, 95])
    bands = found.iloc[:, 3:].to_numpy()
    assert (bands == np.round(bands)).all()
    forecast = fitted.forecast_from(fitted.state_, 2, {})
    values, below = forecast.distribution_function  # type: ignore[attr-defined]
    np.testing.assert_allclose(np.nansum(values[0] * np.diff(below[0], prepend=0)), found[fitted.name][0], rtol=1e-9)
    paths = fitted.simulate(20000, 5)[fitted.name]
    assert abs(paths.mean() - found[fitted.name][0]) < 4 * paths.std() / np.sqrt(len(paths))
    assert (paths == np.round(paths)).all()


def test_sizes_that_are_all_alike_leave_only_the_chance() -> None:
    y = np.where(np.arange(60) % 3 == 2, 4.0, 0.0)
    fitted = Croston(horizon=1).fit(panel({"a": y}))
    forecast = fitted.forecast_from(fitted.state_, 1, {})
    values, below = forecast.distribution_function  # type: ignore[attr-defined]
    np.testing.assert_allclose([values[0, 0], below[0, 0], fitted.predict()["Croston"][0]], [0, 2 / 3, 4 / 3], rtol=1e-12)


@pytest.mark.parametrize("model", [Croston(horizon=28), TSB(horizon=28), ADIDA(horizon=28), IMAPA(horizon=28)], ids=repr)
def test_coverage_of_counts(model: Any) -> None:
    """Of values between atoms: nominal coverage lies between the shares inside without and with the bounds."""
    rng = np.random.default_rng(5)
    y = (rng.random((400, 228)) < 0.35) * (1.0 + rng.negative_binomial(2, 0.3, (400, 228)))
    found = model.fit(panel({f"s{i:03d}": one[:200] for i, one in enumerate(y)})).predict(level=[80, 95])
    ahead = y[:, 200:].reshape(-1)
    for level in (80, 95):
        upper = found[f"{model.name}-hi-{level}"].to_numpy()
        tail = (100 - level) / 200
        assert (ahead > upper).mean() <= tail + 0.01
        assert (ahead >= upper).mean() >= tail - 0.01
        assert (found[f"{model.name}-lo-{level}"] == 0).all()


@EVERY
def test_residual_diagnostics_and_their_picture(model: Any) -> None:
    fitted = model.clone().fit(panel({"a": counts(), "b": counts(4)}))
    found = fitted.residual_diagnostics()
    assert list(found.columns) == ["unique_id", "test", "statistic", "p_value", "lags"]
    assert found["test"].tolist() == 2 * ["ljung_box", "heteroscedasticity", "jarque_bera"]
    assert np.isfinite(found[["statistic", "p_value"]]).all(axis=None)
    assert (found["lags"].iloc[0], fitted.residual_diagnostics(lags=4)["lags"].iloc[3]) == (10, 4)
    assert plot_residuals(fitted.fitted_values()) is not None


def test_residual_diagnostics_say_where_there_is_too_little() -> None:
    fitted = Croston(horizon=1).fit(panel({"a": counts(), "short": [1.0, 0.0]}), freq="D")
    with pytest.warns(match="too few residuals.*short"):
        found = fitted.residual_diagnostics()
    assert found["statistic"].isna().tolist() == 3 * [False] + 3 * [True]
    with pytest.raises(ValueError, match="lags"):
        fitted.residual_diagnostics(lags=0)


def single(at: dict[int, float], n: int = 40) -> np.ndarray:
    y = np.zeros(n)
    y[list(at)] = list(at.values())
    return y


ODD = {
    "first": single({0: 5}),
    "last": single({39: 5}),
    "first and last": single({0: 5, 39: 3}),
    "two": np.array([0.0, 3.0]),
    "one": np.array([3.0]),
    "no demand": np.array([0.0]),
    "every": 1.0 + counts(1, 40),
    "alike": np.full(40, 4.0),
    "negative": -counts(2, 40, 0.4),
    "both signs": counts(4, 40, 0.4) - counts(5, 40, 0.4),
    "huge": single({3: 1e200, 20: 5e200, 30: 1e199}),
    "largest": np.full(40, 1.7e308),
    "tiny": single({3: 1e-300, 20: 5e-300, 30: 2e-300}),
    "least": single({3: 5e-324, 10: 1e-320, 30: 1e-310}),
    "of any size": single({3: 1e200, 20: 1e-200}),
}


@EVERY
@pytest.mark.parametrize("y", ODD.values(), ids=ODD)
def test_odd_demand(model: Any, y: np.ndarray) -> None:
    """Finite, in the range of the data and 0, bands in order and never on the other side of 0; components add up; what follows
    moves the forecast as if it had been there."""
    low, high = min(0.0, y.min()), max(0.0, y.max())
    frame, rest = panel({"a": y}), panel({"a": np.append(y, [0.0, 0.0, 2.0, 0.0])})
    fitted = model.clone(horizon=3).fit(frame, freq="D")
    found = fitted.predict(level=[80, 95])
    paths = fitted.simulate(20)[model.name]
    for values in (found.iloc[:, 2:].to_numpy(), paths.to_numpy()):
        assert np.isfinite(values).all()
        assert (values >= low * (1 + 1e-12)).all()
        assert (values <= high * (1 + 1e-12)).all()
    bands = found[[f"{model.name}-{end}" for end in ("lo-95", "lo-80", "hi-80", "hi-95")]].to_numpy()
    assert (bands[:, 1:] >= bands[:, :-1]).all()
    np.testing.assert_array_equal(fitted.explain()["value"], found[model.name])
    assert not np.isinf(fitted.fitted_values()[model.name]).any()
    wanted = fitted.predict(level=80, frame=rest)
    pd.testing.assert_frame_equal(fitted.update(rest.iloc[len(y) :]).predict(level=80), wanted, check_exact=True)


@EVERY
def test_histories_give_the_same_bits_however_they_come(model: Any) -> None:
    """At once, as a frame, or piece by piece: one row is added after another."""
    whole = panel({name: counts(seed, 90) for seed, name in enumerate("abc")})
    place = whole.groupby("unique_id").cumcount()
    fitted = model.clone(horizon=3).fit(whole[place < 50])
    pd.testing.assert_frame_equal(fitted.predict(frame=whole[place < 50]), fitted.predict(), check_exact=True)
    wanted = fitted.predict(frame=whole, level=80)
    for begin, end in ((50, 51), (51, 70), (70, 90)):
        fitted.update(whole[(place >= begin) & (place < end)])
    pd.testing.assert_frame_equal(fitted.predict(level=80), wanted, check_exact=True)


@EVERY
def test_series_without_demand_beside_others(model: Any) -> None:
    """30 % of a thousand series are 0 throughout, and stay 0; the others are as if they stood alone."""
    series = {f"s{one:03d}": np.zeros(30) if one % 10 < 3 else counts(one, 30) for one in range(1000)}
    found = model.clone().fit(panel(series)).predict(level=80).set_index("unique_id").drop(columns="ds")
    nothing = np.array([one % 10 < 3 for one in range(1000)])
    assert (found[nothing] == 0).all(axis=None)
    assert (found[~nothing].iloc[:, 0] > 0).mean() > 0.99
    alone = model.clone().fit(panel({"s003": series["s003"]})).predict(level=80)
    assert found.loc["s003"].tolist() == alone.iloc[0, 2:].tolist()


def test_demand_whose_differences_are_too_large_for_numbers_is_refused() -> None:
    """Not cut to the largest number there is."""
    with np.errstate(over="ignore", invalid="ignore"):
        fitted = Croston(horizon=1).fit(panel({"a": single({3: -1.7e308, 10: 1.7e308})}))
        with pytest.raises(DataError, match="a"):
            fitted.predict()
