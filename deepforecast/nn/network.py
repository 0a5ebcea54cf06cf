"""ForecastNetwork: scaler, embeddings, body and head in one module, used in training, forecasting
and export.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Batch, Inputs, InputSizes
from deepforecast.nn.body import AutoregressiveBody, DirectBody, State
from deepforecast.nn.heads.registry import Head
from deepforecast.nn.layers import CategoryEmbedding
from deepforecast.nn.scaling import Scale, scale_window


class ForecastNetwork(nn.Module):
    """Scaler, category embeddings, a body and a head.

    The raw output is what the head takes. With a `DirectBody`, `features(inputs)` returns that of
    all steps, (batch, horizon, out_features). With an `AutoregressiveBody`, `initial_state(inputs)`
    returns a state, and `step(state, previous, future, step_index)` the raw output of the next step.

    Parameters
    ----------
    sizes : InputSizes
    body : DirectBody or AutoregressiveBody
    head : Head
    scaler : str, default "standard"
        See `scaling`.
    temporal, static : sequence of int
        Number of categories of each categorical covariate.
    n_future_codes : int, default 0
        Number of the temporal categorical covariates that are known in the future.
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
        self.sizes = sizes
        self.body = body
        self.head = head
        self.scaler = scaler
        self.n_future_codes = n_future_codes
        self.temporal_embedding = CategoryEmbedding(tuple(temporal)) if temporal else None
        self.static_embedding = CategoryEmbedding(tuple(static)) if static else None
        self.level_ratio: Tensor | None
        # Estimated from the training panel, see `scale_window`.
        self.register_buffer("level_ratio", torch.ones(1) if scaler == "level" else None)
        # RevIN (Kim et al. 2022, https://openreview.net/forum?id=cGDAkQo1C0p): factor and offset.
        self.affine = nn.Parameter(torch.tensor([1.0, 0.0])) if scaler == "revin" else None

    @property
    def n_multiplications(self) -> int:
        """Approximate number of multiplications per window.

        A body can state in `over_time` how often its weights are used per window; True: once per
        time step of the window.
        """
        n_weights = sum(parameter.numel() for parameter in self.body.parameters())
        n_uses = getattr(self.body, "over_time", False)
        return n_weights * (self.sizes.input_size if n_uses is True else int(n_uses) or 1)

    def forward(self, batch: Batch) -> tuple[Tensor, Scale]:
        """Return the raw output of every step, (batch, horizon, out_features), and the scale."""
        inputs, scaling = self.inputs(batch)
        return self.features(inputs), scaling

    def inputs(self, batch: Batch) -> tuple[Inputs, Scale]:
        """Return the scaled inputs of the body, with missing values masked, and the scale."""
        season = self.sizes.season if self.head.needs_naive_error else 0
        z, observed, scaling = scale_window(
            batch, self.scaler, season, self.head.support == "real", self.level_ratio
        )
        if self.affine is not None:
            z = z * self.affine[0] + self.affine[1] * observed
        if self.scaler == "difference":
            both_observed = observed * nn.functional.pad(observed[:, :-1], (1, 0))
            z = (z - nn.functional.pad(z[:, :-1], (1, 0))) * both_observed
        past = batch.past
        future = batch.future
        static = batch.static
        if self.temporal_embedding is not None:
            past = torch.cat([past, self.temporal_embedding(batch.past_codes)], dim=-1)
            if self.n_future_codes:
                future = torch.cat(
                    [future, self.temporal_embedding.embed_first(batch.future_codes)], dim=-1
                )
        if self.static_embedding is not None:
            static = torch.cat([static, self.static_embedding(batch.static_codes)], dim=-1)
        if not self.body.uses_series_id:
            return Inputs(z, observed, past, future, static), scaling
        return Inputs(z, observed, past, future, static, batch.static_codes, scaling.level), scaling

    def features(self, inputs: Inputs) -> Tensor:
        """Return the raw output of all steps, (batch, horizon, out_features).

        Autoregressive bodies are decoded greedily.
        """
        if isinstance(self.body, DirectBody):
            raw = self.body.features(inputs)
            return self._restore_location(
                raw, torch.cumsum(raw, 1) if self.scaler == "difference" else raw
            )
        from deepforecast.nn.decoding import decode_greedy

        return decode_greedy(self, inputs)

    def initial_state(self, inputs: Inputs) -> State:
        """Return the state of an autoregressive body at the cutoff."""
        return self.autoregressive_body.initial_state(inputs)

    def step(
        self, state: State, previous: Tensor, future: Tensor, step_index: int
    ) -> tuple[Tensor, State]:
        """Return the raw output of a step, (batch, out_features), and the next state; `previous`
        (batch,) is in units of z.
        """
        raw, state = self.autoregressive_body.step(state, previous, future, step_index)
        return self._restore_location(raw, raw), state

    def loss(self, batch: Batch, teacher_forcing_ratio: float | None = None) -> Tensor:
        """Compute the mean loss over the observed targets, a scalar, plus the penalty of the body in
        training: sum_i w_i loss_i / sum_i w_i with the weights w of the batch. Windows with scale 0
        (constant) do not count.

        Parameters
        ----------
        batch : Batch
            Batch with a target. A target of weight 0 adds nothing, but is an input of the later steps
            of an autoregressive body, like any true value.
        teacher_forcing_ratio : float, optional
            Fraction of the steps of an autoregressive body whose input is the true previous value.
            None: 1 in training, else 0, as in forecasts.
        """
        if batch.target is None:
            raise ValueError("The batch must have a target.")
        inputs, scaling = self.inputs(batch)
        target = scaling.standardize(torch.nan_to_num(batch.target, 0.0))
        target_mask = (batch.target == batch.target) & (scaling.scale > 0)
        target = torch.where(target_mask, target, torch.zeros_like(target)).float().to(inputs.y.device)
        mask = target_mask.float().to(inputs.y.device)
        if isinstance(self.body, DirectBody):
            raw = self.features(inputs)
        else:
            from deepforecast.nn.decoding import decode_teacher_forced

            raw = decode_teacher_forced(
                self,
                inputs,
                target,
                mask,
                float(self.training) if teacher_forcing_ratio is None else teacher_forcing_ratio,
            )
        weight = mask if batch.weight is None else mask * batch.weight
        mean = self.head.mean_loss(raw, target, weight, scaling)
        penalty = self.body.penalty() if self.training else None
        return mean if penalty is None else mean + penalty

    @property
    def autoregressive_body(self) -> AutoregressiveBody:
        """The body, if it is autoregressive; raises TypeError otherwise."""
        if isinstance(self.body, AutoregressiveBody):
            return self.body
        raise TypeError(f"The body must be autoregressive, got {type(self.body).__name__}.")

    def _restore_location(self, raw: Tensor, cumulated: Tensor) -> Tensor:
        """Return `raw` with the location features transformed back to units of z.

        They are taken from `cumulated`, the cumulative sums of `raw` for the scaler "difference",
        else `raw` itself; for "revin" the affine map is inverted.
        """
        location_slice = self.head.location_slice
        if location_slice is None or (cumulated is raw and self.affine is None):
            return raw
        locations = cumulated[..., location_slice]
        if self.affine is not None:
            locations = (locations - self.affine[1]) / self.affine[0]
        return torch.cat(
            [raw[..., : location_slice.start], locations, raw[..., location_slice.stop :]], dim=-1
        )
