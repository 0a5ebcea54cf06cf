"""A sum of a trend, seasons, events and effects, which hang on time and on what is known ahead alone, and of what lags add.

Triebe, Hewamalage, Pilyugina, Laptev, Bergmeir, Rajagopal 2021, "NeuralProphet: Explainable Forecasting at Scale"; AR-Net:
Triebe, Laptev, Rajagopal 2019. Priors are those of Prophet: what is made least is the mean loss and, over the number of values
learned from, minus the logarithm of the priors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, Sizes
from deepforecast.nn.body import Direct
from deepforecast.nn.perceptron import Perceptron

FREE = 5.0
"""The deviation of the normal prior of slope and offset."""


@dataclass(frozen=True)
class Term:
    """Columns of what is known of a row that have coefficients: one component of the sum.

    `shift` is added to them, so that 0 is where it was; `gate`: the column that says where they count, by what it is
    multiplied, and what is then added, for 1 and 0. `own`: each series has coefficients of its own beside those of all.
    """

    name: str
    columns: slice
    prior_scale: float
    multiplies: bool = False
    own: bool = False
    shift: float = 0.0
    gate: tuple[int, float, float] | None = None


@dataclass(frozen=True)
class Additive:
    """What an additive network consists of.

    `known`: the columns of a window's past that are known ahead too, in the order of those of its future; `time`: which of them
    is time, from 0 to 1 over the history of the fit; `changes`: when the slope may change on it, None: a flat trend; `lagged`:
    columns of the past by name; `series`: how many have components of their own, `own_trend`: whether the trend is one.
    """

    known: tuple[int, ...]
    time: int
    changes: tuple[float, ...] | None
    terms: tuple[Term, ...] = ()
    lags: bool = True
    lagged: tuple[tuple[str, slice], ...] = ()
    hidden: Sequence[int] = ()
    series: int = 0
    own_trend: bool = False
    values: int = 1
    change_scale: float = 0.05
    lag_scale: float | None = None
    name_of_lags: str = field(default="ar")


class AdditiveBody(Direct):
    """Trend, terms and lags added up; what lags add follows from how far the past was from all else."""

    looks_up = True
    rests_on_window = False
    at: Tensor
    known: Tensor
    gate_at: Tensor
    owned: Tensor
    shift: Tensor
    multiplies: Tensor
    precision: Tensor
    changes: Tensor
    gate_by: Tensor
    gate_shift: Tensor

    def __init__(self, sizes: Sizes, plan: Additive) -> None:
        super().__init__()
        where = sizes.location or slice(0, 1)
        self.plan, self.horizon, self.width, self.place = plan, sizes.horizon, sizes.width, where.start
        self.looks_back = bool(plan.lags or plan.lagged)
        self.remembers = plan.lags
        self.first: dict[str, int] = {}  # of columns that lie side by side, the first
        self._columns(plan.terms)
        self._holds("known", plan.known)
        self.register_buffer("changes", torch.tensor(plan.changes or (), dtype=torch.float32), persistent=False)
        self.offset, self.slope = nn.Parameter(torch.zeros(1)), None
        self.turns = nn.Parameter(torch.zeros(len(self.changes)))
        if plan.changes is not None:
            self.slope = nn.Parameter(torch.zeros(1))
        self.weight = nn.Parameter(torch.zeros(len(self.at), sizes.width))
        self.noise = nn.Parameter(torch.zeros(sizes.horizon, sizes.width))
        trend = (1 + (self.slope is not None) + len(self.changes)) * plan.own_trend
        own = trend + sum(one.columns.stop - one.columns.start for one in plan.terms if one.own)
        self.own = nn.Parameter(torch.zeros(plan.series, own)) if own and plan.series else None
        shape = sizes.horizon * sizes.width
        self.lags = _from_lags(sizes.input_size, plan.hidden, shape) if plan.lags else None
        self.lagged = nn.ModuleList(
            _from_lags(sizes.input_size * (one.stop - one.start), plan.hidden, shape) for _, one in plan.lagged
        )

    def _columns(self, terms: Sequence[Term]) -> None:
        """Each column of each term: where it is found, and what becomes of it."""
        each = [one for one in terms for _ in range(one.columns.start, one.columns.stop)]
        gates = [one.gate or (0, 0.0, 1.0) for one in each]
        self.gated, self.shifted = any(one.gate is not None for one in terms), any(one.shift for one in terms)
        self._holds("at", [place for one in terms for place in range(one.columns.start, one.columns.stop)])
        self._holds("gate_at", [one[0] for one in gates])
        self._holds("owned", [place for place, one in enumerate(each) if one.own])
        scaled = {
            "shift": [one.shift for one in each], "multiplies": [float(one.multiplies) for one in each],
            "precision": [one.prior_scale**-2.0 for one in each], "gate_by": [one[1] for one in gates],
            "gate_shift": [one[2] for one in gates],
        }  # fmt: skip
        for name, numbers in scaled.items():
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.float32), persistent=False)

    def _holds(self, name: str, columns: Sequence[int]) -> None:
        """Columns by number, and whether they lie side by side."""
        self.register_buffer(name, torch.tensor(columns, dtype=torch.int64), persistent=False)
        if len(columns) and list(columns) == list(range(columns[0], columns[0] + len(columns))):
            self.first[name] = columns[0]

    def features(self, inputs: Inputs) -> Tensor:
        """(B, horizon, width): the sum of the parts, and what says how sure it is."""
        rows = self._rows(inputs)
        trend, own = self._trend(rows, inputs), self._own(inputs)
        coefficients = self.weight[:, self.place] + (0.0 if own is None else self._of_terms(own))
        columns = self._of_rows(rows)
        base = trend + _times(columns, coefficients * (1.0 - self.multiplies))
        if any(one.multiplies for one in self.plan.terms):
            base = base + _grown(trend, inputs) * _times(columns, coefficients * self.multiplies)
        ahead = base[:, -self.horizon :]
        found = columns[:, -self.horizon :] @ self.weight + self.noise
        for one in self._from_past(inputs, base).values():
            found = found + one
            ahead = ahead + one[..., self.place]
        return torch.cat([found[..., : self.place], ahead.unsqueeze(-1), found[..., self.place + 1 :]], dim=-1)

    def parts(self, inputs: Inputs) -> dict[str, Tensor]:
        """What each component brings: of the numbers that are places, (B, horizon, width), the others 0."""
        rows = self._rows(inputs)
        trend, own = self._trend(rows, inputs), self._own(inputs)
        coefficients = self.weight[:, self.place] + (0.0 if own is None else self._of_terms(own))
        columns, grown, found = self._of_rows(rows), _grown(trend, inputs), {"trend": trend}
        begin = 0
        for one in self.plan.terms:
            end = begin + one.columns.stop - one.columns.start
            each = _times(columns[..., begin:end], coefficients[..., begin:end])
            found[one.name], begin = grown * each if one.multiplies else each, end
        past = self._from_past(inputs, torch.stack(list(found.values())).sum(0))
        ahead = {name: one[:, -self.horizon :] for name, one in found.items()}
        ahead |= {name: one[..., self.place] for name, one in past.items()}
        shape = (self.place, self.width - self.place - 1)
        return {name: nn.functional.pad(one.unsqueeze(-1), shape) for name, one in ahead.items()}

    def penalty(self) -> Tensor | None:
        """Minus the logarithm of the priors, over the number of values there are."""
        plan, free = self.plan, 0.5 / FREE**2
        found = free * self.offset.square().sum() + self.turns.abs().sum() / plan.change_scale
        found = found + 0.5 * (self.weight[:, self.place].square() * self.precision).sum()
        if self.slope is not None:
            found = found + free * self.slope.square().sum()
        if self.own is not None:
            trend, turns, terms = self._split(self.own)
            found = found + free * trend.square().sum() + turns.abs().sum() / plan.change_scale
            found = found + 0.5 * (terms.square() * self.precision[self.owned]).sum()
        if plan.lag_scale is not None:
            each = [next(one.parameters()).abs().sum() for one in (self.lags, *self.lagged) if one is not None]
            found = found + torch.stack(each).sum() / (plan.lag_scale * self.horizon)
        return found / plan.values

    def begin(
        self, trend: Sequence[float], turns: Sequence[float], coefficients: dict[str, Sequence[float]],
        rest: dict[int, float],
    ) -> None:  # fmt: skip
        """Start from what is known: offset and slope (if there is one), changes of slope, coefficients by term, and numbers
        that are no places."""
        with torch.no_grad():
            for number, value in rest.items():
                self.noise[:, number] = value
            self.offset[0] = trend[0]
            if self.slope is not None:
                self.slope[0] = trend[1]
            self.turns.copy_(torch.as_tensor(turns))
            start = 0
            for one in self.plan.terms:
                end = start + one.columns.stop - one.columns.start
                if one.name in coefficients:
                    self.weight[start:end, self.place] = torch.as_tensor(coefficients[one.name], dtype=torch.float32)
                start = end

    def _rows(self, inputs: Inputs) -> Tensor:
        """What is known of the rows ahead, and of those of the past where they count: (B, rows, columns)."""
        if not self.remembers:
            return inputs.future
        return torch.cat([self._chosen(inputs.past, "known"), inputs.future], dim=1)

    def _of_rows(self, rows: Tensor) -> Tensor:
        """The columns of all terms, (B, rows, columns)."""
        found = self._chosen(rows, "at")
        if self.shifted:
            found = found + self.shift
        return found * (self._chosen(rows, "gate_at") * self.gate_by + self.gate_shift) if self.gated else found

    def _trend(self, rows: Tensor, inputs: Inputs) -> Tensor:
        """(B, rows)."""
        time, own = rows[..., self.plan.time], self._own(inputs) if self.plan.own_trend else None
        offset: Tensor = self.offset
        slope: Tensor | None = self.slope
        turns: Tensor = self.turns
        if own is not None:
            trend, own_turns, _ = self._split(own)
            offset, turns = offset + trend[:, :1], turns + own_turns
            slope = None if slope is None else slope + trend[:, 1:]
        found = offset.expand(time.shape) if slope is None else offset + slope * time
        if len(self.changes):
            found = found + _times((time.unsqueeze(-1) - self.changes).relu(), turns)
        return found

    def _own(self, inputs: Inputs) -> Tensor | None:
        """The parameters of each window's own series; one that is not known has the mean of all. (B, parameters)"""
        if self.own is None or inputs.codes is None:
            return None
        codes = inputs.codes[:, :1]
        known = nn.functional.embedding((codes[:, 0] - 1).clamp(min=0), self.own)
        return torch.where(codes > 0, known, self.own.mean(0))

    def _split(self, own: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Those of offset and slope, of changes, and of terms."""
        trend = (1 + (self.slope is not None)) * self.plan.own_trend
        turns = len(self.changes) * self.plan.own_trend
        return own[:, :trend], own[:, trend : trend + turns], own[:, trend + turns :]

    def _chosen(self, rows: Tensor, name: str) -> Tensor:
        """Some columns of (B, rows, columns): a view, where they lie side by side."""
        columns: Tensor = getattr(self, name)
        if name not in self.first:
            return rows.index_select(2, columns)
        return rows[..., self.first[name] : self.first[name] + len(columns)]

    def _of_terms(self, own: Tensor) -> Tensor:
        """A series' own coefficients among those of all, (B, columns)."""
        return own.new_zeros(len(own), len(self.at)).index_add(1, self.owned, self._split(own)[2])

    def _from_past(self, inputs: Inputs, base: Tensor) -> dict[str, Tensor]:
        """What lags add, each (B, horizon, width)."""
        found: dict[str, Tensor] = {}
        if self.lags is not None:
            away = (inputs.y - base[:, : -self.horizon]) * inputs.seen
            found[self.plan.name_of_lags] = self.lags(away)
        for (name, columns), layers in zip(self.plan.lagged, self.lagged, strict=True):
            found[name] = layers(inputs.past[..., columns].flatten(1))
        return {name: one.view(-1, self.horizon, self.width) for name, one in found.items()}


def _from_lags(width_in: int, hidden: Sequence[int], width_out: int) -> nn.Module:
    """Hidden layers, or a linear map, which begins at zero: it has nothing to break out of."""
    if hidden:
        return Perceptron(width_in, hidden, width_out)
    linear = nn.Linear(width_in, width_out, bias=False)
    nn.init.zeros_(linear.weight)
    return linear


def _times(columns: Tensor, coefficients: Tensor) -> Tensor:
    """(B, rows, columns) by coefficients of all, (columns,), or of each window, (B, columns): (B, rows)."""
    if coefficients.ndim == 1:
        return columns @ coefficients
    return (columns @ coefficients.unsqueeze(-1)).squeeze(-1)


def _grown(trend: Tensor, inputs: Inputs) -> Tensor:
    """What terms that multiply do so: the trend as the series has it, where 0 is 0, over its level, or 1 where that is less."""
    if inputs.level is None:
        return trend
    return (trend + inputs.level) / inputs.level.abs().clamp(min=1.0)
