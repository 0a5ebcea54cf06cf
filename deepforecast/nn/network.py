"""ForecastNetwork: windows in, what the head reads out; the same module trains, forecasts and is exported."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Batch, Inputs, InputSizes
from deepforecast.nn.body import AutoregressiveBody, DirectBody, State
from deepforecast.nn.embeddings import CategoryEmbedding
from deepforecast.nn.registry import Head
from deepforecast.nn.scaling import Scale, scale_window


class ForecastNetwork(nn.Module):
    """Scaling, embedded categories, a body and a head.

    - Direct bodies: `features(inputs)` gives (B, horizon, width), which the head reads.
    - Stepwise bodies: `initial_state(inputs)` gives a state, `step(state, previous, ahead, number)` what the head reads next.
    """

    def __init__(
        self,
        sizes: InputSizes,
        body: DirectBody | AutoregressiveBody,
        head: Head,
        *,
        scaler: str = "standard",
        temporal: Sequence[int] = (),
        static: Sequence[int] = (),
        n_future_codes: int = 0,
    ) -> None:
        super().__init__()
        self.sizes, self.body, self.head = sizes, body, head
        self.scaler, self.n_future_codes = scaler, n_future_codes
        self.temporal_embedding = CategoryEmbedding(tuple(temporal)) if temporal else None
        self.static_embedding = CategoryEmbedding(tuple(static)) if static else None
        self.level_ratio: Tensor | None
        self.register_buffer("level_ratio", torch.ones(1) if scaler == "level" else None)  # of the panel: see `scale_window`
        self.affine = nn.Parameter(torch.tensor([1.0, 0.0])) if scaler == "revin" else None

    @property
    def n_multiplications(self) -> int:
        """Multiplications of a pass over one window, about; a body may say how often its weights are used, True: by row."""
        weights, reuse = sum(parameter.numel() for parameter in self.body.parameters()), getattr(self.body, "over_time", False)
        return weights * (self.sizes.input_size if reuse is True else int(reuse) or 1)

    def forward(self, batch: Batch) -> tuple[Tensor, Scale]:
        """What the head reads of every step, (B, horizon, width), and the scale it is on."""
        inputs, scaling = self.inputs(batch)
        return self.features(inputs), scaling

    def inputs(self, batch: Batch) -> tuple[Inputs, Scale]:
        """The windows as the body sees them. A value that is missing does not get there."""
        season = self.sizes.season if self.head.needs_naive_error else 0
        z, observed, scaling = scale_window(batch, self.scaler, season, self.head.support == "real", self.level_ratio)
        if self.affine is not None:
            z = z * self.affine[0] + self.affine[1] * observed
        if self.scaler == "difference":
            both_observed = observed * nn.functional.pad(observed[:, :-1], (1, 0))
            z = (z - nn.functional.pad(z[:, :-1], (1, 0))) * both_observed
        past, future, static = batch.past, batch.future, batch.static
        if self.temporal_embedding is not None:
            past = torch.cat([past, self.temporal_embedding(batch.past_codes)], dim=-1)
            if self.n_future_codes:
                future = torch.cat([future, self.temporal_embedding.embed_first(batch.future_codes)], dim=-1)
        if self.static_embedding is not None:
            static = torch.cat([static, self.static_embedding(batch.static_codes)], dim=-1)
        if not self.body.uses_series_id:
            return Inputs(z, observed, past, future, static), scaling
        return Inputs(z, observed, past, future, static, batch.static_codes, scaling.level), scaling

    def features(self, inputs: Inputs) -> Tensor:
        """All steps at once; a stepwise body is fed its own medians."""
        if isinstance(self.body, DirectBody):
            raw = self.body.features(inputs)
            return self._restore_location(raw, torch.cumsum(raw, 1) if self.scaler == "difference" else raw)
        from deepforecast.nn.decoding import decode_greedy

        return decode_greedy(self, inputs)

    def initial_state(self, inputs: Inputs) -> State:
        """The state of a stepwise body at the cutoff."""
        return self.autoregressive_body.initial_state(inputs)

    def step(self, state: State, previous: Tensor, future: Tensor, number: int) -> tuple[Tensor, State]:
        """What the head reads of step `number`, (B, width), and the state after it; `previous` (B,) in units of z."""
        raw, state = self.autoregressive_body.step(state, previous, future, number)
        return self._restore_location(raw, raw), state

    def loss(self, batch: Batch, teacher_forcing_ratio: float | None = None) -> Tensor:
        """The mean loss over the values that were seen. `teacher_forcing_ratio`: of the steps of a stepwise body that are taught by the true
        value before them; the others see the network's own. By default all in training and, as in a forecast, none after it."""
        if batch.target is None:
            raise ValueError("a batch to learn from has a target")
        inputs, scaling = self.inputs(batch)
        target = scaling.standardize(torch.nan_to_num(batch.target, 0.0))
        target_mask = (batch.target == batch.target) & (scaling.scale > 0)
        target = torch.where(target_mask, target, torch.zeros_like(target)).float()
        weight = target_mask.float()
        if isinstance(self.body, DirectBody):
            raw = self.features(inputs)
        else:
            from deepforecast.nn.decoding import decode_teacher_forced

            raw = decode_teacher_forced(self, inputs, target, weight, float(self.training) if teacher_forcing_ratio is None else teacher_forcing_ratio)
        losses = self.head.loss(raw, target, scaling)
        mean = (losses * weight).sum() / weight.sum().clamp(min=1.0)
        penalty = self.body.penalty() if self.training else None
        return mean if penalty is None else mean + penalty

    @property
    def autoregressive_body(self) -> AutoregressiveBody:
        """The body, if it takes its steps in turn."""
        if isinstance(self.body, AutoregressiveBody):
            return self.body
        raise TypeError(f"{type(self.body).__name__} gives all steps at once; it has no step")

    def _restore_location(self, raw: Tensor, cumulated: Tensor) -> Tensor:
        """The numbers that are places on the scale of z brought back to it: sums of changes, RevIN's learned affine undone."""
        location_slice = self.head.location_slice
        if location_slice is None or (cumulated is raw and self.affine is None):
            return raw
        locations = cumulated[..., location_slice]
        if self.affine is not None:
            locations = (locations - self.affine[1]) / self.affine[0]
        return torch.cat([raw[..., : location_slice.start], locations, raw[..., location_slice.stop :]], dim=-1)


