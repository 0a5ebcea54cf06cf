"""ForecastNetwork: windows in, what the head reads out; the same module trains, forecasts and is exported."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Batch, Inputs, Sizes
from deepforecast.nn.body import Direct, State, Stepwise
from deepforecast.nn.embeddings import Embedded
from deepforecast.nn.heads import Head
from deepforecast.nn.scaling import Scale, scaled


class ForecastNetwork(nn.Module):
    """Scaling, embedded categories, a body and a head.

    - Direct bodies: `features(inputs)` gives (B, horizon, width), which the head reads.
    - Stepwise bodies: `start(inputs)` gives a state, `step(state, previous, ahead, number)` what the head reads next.
    """

    def __init__(
        self,
        sizes: Sizes,
        body: Direct | Stepwise,
        head: Head,
        *,
        scaler: str = "standard",
        temporal: Sequence[int] = (),
        static: Sequence[int] = (),
        codes_ahead: int = 0,
    ) -> None:
        super().__init__()
        self.sizes, self.body, self.head = sizes, body, head
        self.scaler, self.codes_ahead = scaler, codes_ahead
        self.temporal = Embedded(tuple(temporal)) if temporal else None
        self.fixed = Embedded(tuple(static)) if static else None
        self.ratio: Tensor | None
        self.register_buffer("ratio", torch.ones(1) if scaler == "level" else None)  # of the panel: see `scaled`
        self.affine = nn.Parameter(torch.tensor([1.0, 0.0])) if scaler == "revin" else None

    @property
    def work(self) -> int:
        """Multiplications of a pass over one window, about; a body may say how often its weights are used, True: by row."""
        weights, often = sum(one.numel() for one in self.body.parameters()), getattr(self.body, "over_time", False)
        return weights * (self.sizes.input_size if often is True else int(often) or 1)

    def forward(self, batch: Batch) -> tuple[Tensor, Scale]:
        """What the head reads of every step, (B, horizon, width), and the scale it is on."""
        inputs, scale = self.inputs(batch)
        return self.features(inputs), scale

    def inputs(self, batch: Batch) -> tuple[Inputs, Scale]:
        """The windows as the body sees them. A value that is missing does not get there."""
        season = self.sizes.season if self.head.beside_naive else 0
        z, seen, scale = scaled(batch, self.scaler, season, self.head.support == "real", self.ratio)
        if self.affine is not None:
            z = z * self.affine[0] + self.affine[1] * seen
        if self.scaler == "difference":
            both = seen * nn.functional.pad(seen[:, :-1], (1, 0))
            z = (z - nn.functional.pad(z[:, :-1], (1, 0))) * both
        past, future, static = batch.past, batch.future, batch.static
        if self.temporal is not None:
            past = torch.cat([past, self.temporal(batch.past_codes)], dim=-1)
            if self.codes_ahead:
                future = torch.cat([future, self.temporal.first(batch.future_codes)], dim=-1)
        if self.fixed is not None:
            static = torch.cat([static, self.fixed(batch.static_codes)], dim=-1)
        if not self.body.looks_up:
            return Inputs(z, seen, past, future, static), scale
        return Inputs(z, seen, past, future, static, batch.static_codes, scale.level), scale

    def features(self, inputs: Inputs) -> Tensor:
        """All steps at once; a stepwise body is fed its own medians."""
        if isinstance(self.body, Direct):
            raw = self.body.features(inputs)
            return self._placed(raw, torch.cumsum(raw, 1) if self.scaler == "difference" else raw)
        from deepforecast.nn.decoding import greedy

        return greedy(self, inputs)

    def start(self, inputs: Inputs) -> State:
        """The state of a stepwise body at the cutoff."""
        return self.stepwise.start(inputs)

    def step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
        """What the head reads of step `number`, (B, width), and the state after it; `previous` (B,) in units of z."""
        raw, state = self.stepwise.step(state, previous, ahead, number)
        return self._placed(raw, raw), state

    def loss(self, batch: Batch, share: float | None = None) -> Tensor:
        """The mean loss over the values that were seen. `share`: of the steps of a stepwise body that are taught by the true
        value before them; the others see the network's own. By default all in training and, as in a forecast, none after it."""
        if batch.target is None:
            raise ValueError("a batch to learn from has a target")
        inputs, scale = self.inputs(batch)
        target = scale.away(torch.nan_to_num(batch.target, 0.0))
        told = (batch.target == batch.target) & (scale.spread > 0)
        target = torch.where(told, target, torch.zeros_like(target)).float()
        weight = told.float()
        if isinstance(self.body, Direct):
            raw = self.features(inputs)
        else:
            from deepforecast.nn.decoding import taught

            raw = taught(self, inputs, target, weight, float(self.training) if share is None else share)
        found = self.head.loss(raw, target, scale)
        mean = (found * weight).sum() / weight.sum().clamp(min=1.0)
        penalty = self.body.penalty() if self.training else None
        return mean if penalty is None else mean + penalty

    @property
    def stepwise(self) -> Stepwise:
        """The body, if it takes its steps in turn."""
        if isinstance(self.body, Stepwise):
            return self.body
        raise TypeError(f"{type(self.body).__name__} gives all steps at once; it has no step")

    def _placed(self, raw: Tensor, summed: Tensor) -> Tensor:
        """The numbers that are places on the scale of z brought back to it: sums of changes, RevIN's learned affine undone."""
        where = self.head.location
        if where is None or (summed is raw and self.affine is None):
            return raw
        places = summed[..., where]
        if self.affine is not None:
            places = (places - self.affine[1]) / self.affine[0]
        return torch.cat([raw[..., : where.start], places, raw[..., where.stop :]], dim=-1)


