"""What a forecast does not depend on, and what it follows: other series, the batch, names, scale and shift."""

from __future__ import annotations

import numpy as np

from deepforecast.testing import worlds
from deepforecast.testing.check import able, rule
from deepforecast.testing.expect import column, expect_close, expect_equal, expect_same, names_of
from deepforecast.testing.subject import Subject


def _real(subject: Subject) -> str | None:
    domain = subject.capabilities.domain
    return None if domain == "real" else f"capabilities.domain is {domain}"


@rule(able("local"))
def a_panel_is_its_series_one_by_one(subject: Subject) -> None:
    """A series has the same forecast, to the bit, whether it is fitted alone or among others."""
    whole = subject.fitted().predict(level=subject.levels)
    for name in worlds.ids():
        alone = subject.alone(name).predict(level=subject.levels)
        expect_same(alone, whole[whole["unique_id"] == name].reset_index(drop=True), f"the forecast of {name} alone")


@rule()
def the_batch_does_not_matter(subject: Subject) -> None:
    """The forecast of a series does not depend on which series are forecast beside it."""
    model = subject.fitted()
    whole = model.predict(frame=worlds.daily(), level=subject.levels)
    for names in (["s1"], ["s0", "s2"]):
        rows = worlds.daily()[worlds.daily()["unique_id"].isin(names)]
        found, wanted = model.predict(frame=rows, level=subject.levels), whole[whole["unique_id"].isin(names)]
        for name in names_of(found)[2:]:
            ours, theirs = column(found, name), column(wanted, name)
            if subject.capabilities.by_series:
                expect_equal(ours, theirs, f"{name} of {', '.join(names)} apart from the others")
            else:
                expect_close(
                    ours, theirs, 1e-6 * float(np.abs(theirs).max()), f"{name} of {', '.join(names)} apart from the others"
                )


@rule(able("local"))
def names_and_order_of_series_do_not_matter(subject: Subject) -> None:
    """Series under other names, sorted another way, beside one more, have the same forecasts."""
    wanted = subject.fitted().predict(level=subject.levels)
    names = dict(zip(worlds.ids(), ("z", "m", "a"), strict=True))
    start = worlds.daily()["ds"].max() - np.timedelta64(41, "D")
    other = worlds.of_values(np.where(np.arange(42) % 2, 5e6, 9e6), "k", start)
    renamed = worlds.daily().assign(unique_id=worlds.daily()["unique_id"].map(names))
    found = subject.forecast(worlds.together(other, renamed), level=subject.levels)
    for name, new in names.items():
        ours, theirs = found[found["unique_id"] == new], wanted[wanted["unique_id"] == name]
        for one in names_of(wanted)[2:]:
            expect_equal(column(ours, one), column(theirs, one), f"{one} of series {name} under the name {new}")


@rule(able("scale_equivariant"))
def the_forecast_follows_the_scale(subject: Subject) -> None:
    """Data times a factor give the forecast times that factor, from 1e-12 to 1e12, as exactly as is declared."""
    wanted = subject.fitted().predict(level=subject.levels)
    for factor in (1e-12, 1e-6, 1e12):
        found = subject.forecast(worlds.with_y(worlds.daily(), worlds.daily()["y"] * factor), level=subject.levels)
        for name in names_of(wanted)[2:]:
            theirs = column(wanted, name)
            tolerance = subject.precision * float(np.abs(theirs).max())
            expect_close(
                column(found, name) / factor, theirs, tolerance, f"{name} of the data times {factor:g}, over {factor:g},"
            )


@rule(able("shift_equivariant"))
def the_forecast_follows_a_shift(subject: Subject) -> None:
    """Data plus a constant give the forecast plus that constant, as exactly as is declared."""
    wanted = subject.fitted().predict(level=subject.levels)
    spread = float(worlds.daily()["y"].std())
    for shift in (1000.0, -1e6):
        if not subject.takes(worlds.daily()["y"] + shift):
            continue
        found = subject.forecast(worlds.with_y(worlds.daily(), worlds.daily()["y"] + shift), level=subject.levels)
        for name in names_of(wanted)[2:]:
            what = f"{name} of the data plus {shift:g}, less that,"
            expect_close(column(found, name) - shift, column(wanted, name), subject.shift_precision * spread, what)


@rule(able("scale_equivariant", "shift_equivariant", "sign_equivariant"), _real)
def the_forecast_follows_the_sign(subject: Subject) -> None:
    """Data with the other sign give the forecast with the other sign, as exactly as is declared; bounds change places."""
    wanted, spread = subject.fitted().predict(level=subject.levels), float(worlds.daily()["y"].std())
    found = subject.forecast(worlds.with_y(worlds.daily(), -worlds.daily()["y"]), level=subject.levels)
    for name in names_of(wanted)[2:]:
        other = name.replace("-lo-", "-HI-").replace("-hi-", "-lo-").replace("-HI-", "-hi-")
        what = f"{name} of the data with the other sign, with the other sign,"
        expect_close(-column(found, name), column(wanted, other), subject.shift_precision * spread, what)
