"""ForecastNetwork: scaler, embeddings, body and head in one module, used in training, forecasting
and export; and the base classes of bodies, which map inputs to the features that the head reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Batch, Inputs, InputSizes
from deepforecast.nn.heads.base import Head
from deepforecast.nn.layers import CategoryEmbedding
from deepforecast.nn.scaling import Scale, last_observed, scale_window

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int


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

    def forward(self, batch: Batch) -> tuple[Float[Tensor, "batch horizon out_features"], Scale]:
        """Return the raw output of every step and the scale."""
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

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps.

        Autoregressive bodies are decoded greedily.
        """
        if isinstance(self.body, DirectBody):
            raw = self.body.features(inputs)
            return self._restore_location(
                raw, torch.cumsum(raw, 1) if self.scaler == "difference" else raw
            )
        return decode_greedy(self, inputs)

    def initial_state(self, inputs: Inputs) -> State:
        """Return the state of an autoregressive body at the cutoff."""
        return self.autoregressive_body.initial_state(inputs)

    def forward_teacher_forced(
        self, batch: Batch
    ) -> tuple[Float[Tensor, "batch horizon out_features"], Scale]:
        """Return what `forward` does, but given the true values before each step of an autoregressive
        body.
        """
        inputs, scaling = self.inputs(batch)
        if isinstance(self.body, DirectBody):
            return self.features(inputs), scaling
        if batch.target is None:
            raise ValueError("The batch must have a target.")
        target, mask = _scale_target(batch.target, scaling, inputs.y.device)
        raw = decode_teacher_forced(self, inputs, target, mask, 1.0)
        return raw[:, -target.shape[1] :], scaling

    def step(
        self,
        state: State,
        previous: Float[Tensor, "paths"],
        future: Float[Tensor, "paths future_features"],
        step_index: int,
    ) -> tuple[Float[Tensor, "paths out_features"], State]:
        """Return the raw output of a step and the next state; `previous` is in units of z."""
        raw, state = self.autoregressive_body.step(state, previous, future, step_index)
        return self._restore_location(raw, raw), state

    def loss(self, batch: Batch, teacher_forcing_ratio: float | None = None) -> Float[Tensor, ""]:
        """Compute the mean loss over the observed targets, a scalar, plus the penalty of the body in
        training: sum_i w_i loss_i / sum_i w_i with the weights w of the batch. Windows with scale 0
        (constant) do not count. Bodies that also predict steps of the window are scored on these, too.

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
        target, mask = _scale_target(batch.target, scaling, inputs.y.device)
        if isinstance(self.body, DirectBody):
            raw = self.features(inputs)
        else:
            raw = decode_teacher_forced(
                self,
                inputs,
                target,
                mask,
                float(self.training) if teacher_forcing_ratio is None else teacher_forcing_ratio,
            )
        weight = mask if batch.weight is None else mask * batch.weight
        if n_window := raw.shape[1] - target.shape[1]:  # steps of the window that the body predicts
            values, observed = _scale_target(batch.y[:, -n_window:], scaling, inputs.y.device)
            if batch.past_weight is not None:
                observed = observed * batch.past_weight[:, -n_window:]
            target, weight = torch.cat([values, target], 1), torch.cat([observed, weight], 1)
        mean = self.head.mean_loss(raw, target, weight, scaling)
        penalty = self.body.penalty() if self.training else None
        return mean if penalty is None else mean + penalty

    @property
    def autoregressive_body(self) -> AutoregressiveBody:
        """The body, if it is autoregressive; raises TypeError otherwise."""
        if isinstance(self.body, AutoregressiveBody):
            return self.body
        raise TypeError(f"The body must be autoregressive, got {type(self.body).__name__}.")

    def _restore_location(
        self,
        raw: Float[Tensor, "*shape out_features"],
        cumulated: Float[Tensor, "*shape out_features"],
    ) -> Float[Tensor, "*shape out_features"]:
        """Return `raw` with its location features in units of z; the other features are unchanged.

        The locations are those of `cumulated`: the cumulative sums of `raw` over the steps for the
        scaler "difference", otherwise `raw` itself. For "revin" the affine map is inverted.
        """
        location_slice = self.head.location_slice
        if location_slice is None or (cumulated is raw and self.affine is None):
            return raw
        locations = cumulated[..., location_slice]
        if self.affine is not None:
            locations = (locations - self.affine[1]) / self.affine[0]  # offset and factor
        return torch.cat(
            [raw[..., : location_slice.start], locations, raw[..., location_slice.stop :]], dim=-1
        )


def _scale_target(
    values: Float64[Tensor, "batch steps"], scaling: Scale, device: torch.device
) -> tuple[Float[Tensor, "batch steps"], Float[Tensor, "batch steps"]]:
    """Standardize targets; return them, 0 where missing, and a mask, 1 where observed.

    Those of windows with scale 0 (constant) count as missing.
    """
    target = scaling.standardize(torch.nan_to_num(values, 0.0))
    target_mask = (values == values) & (scaling.scale > 0)
    target = torch.where(target_mask, target, torch.zeros_like(target)).float().to(device)
    return target, target_mask.float().to(device)


def first_input(inputs: Inputs) -> Float[Tensor, "batch"]:
    """Return the decoder's first input, the last observed value."""
    return last_observed(inputs.y, inputs.observed).squeeze(1)


def decode_greedy(
    network: ForecastNetwork, inputs: Inputs, mean: bool = False
) -> Float[Tensor, "batch horizon out_features"]:
    """Decode with the median (or mean) of each step as the next input.

    Returns the raw output of every step.
    """
    state, previous = network.initial_state(inputs), first_input(inputs)
    future = inputs.future_features
    raw_steps: list[Tensor] = []
    for step in range(network.sizes.horizon):
        raw, state = network.step(state, previous, future[:, step], step)
        previous = (network.head.mean(raw) if mean else network.head.median(raw)).to(previous)
        raw_steps.append(raw)
    return stack_steps(raw_steps)


def decode_teacher_forced(
    network: ForecastNetwork,
    inputs: Inputs,
    target: Float[Tensor, "batch horizon"],
    target_mask: Float[Tensor, "batch horizon"],
    ratio: float,
) -> Float[Tensor, "batch steps out_features"]:
    """Decode with the true value before each step as input, where it is observed.

    Parameters
    ----------
    network : ForecastNetwork
    inputs : Inputs
    target : Tensor
        Scaled target.
    target_mask : Tensor
        1 where the target is observed, else 0.
    ratio : float
        Teacher-forcing ratio. 1: all steps get the true value, and are computed in one pass. Below 1:
        each step gets it with this probability, otherwise the median that the network predicts
        (scheduled sampling, Bengio et al. 2015, arXiv:1506.03099).

    Returns
    -------
    Tensor
        The raw output of all steps. With ratio 1, the steps of the window that the body predicts come
        first, see `AutoregressiveBody.forward_all_positions`.
    """
    if ratio >= 1.0:
        previous_values = _previous_values(first_input(inputs), target, target_mask)
        raw = network.autoregressive_body.forward_all_positions(inputs, previous_values)
        return network._restore_location(raw, raw)
    state, previous = network.initial_state(inputs), first_input(inputs)
    future = inputs.future_features
    raw_steps: list[Tensor] = []
    teacher_forced = (
        torch.rand(target.shape, device=target.device) < ratio
        if ratio > 0
        else torch.zeros_like(target_mask, dtype=torch.bool)
    )
    for step in range(target.shape[1]):
        raw, state = network.step(state, previous, future[:, step], step)
        raw_steps.append(raw)
        prediction = network.head.median(raw).detach().to(target.dtype)
        previous = torch.where(
            teacher_forced[:, step] & (target_mask[:, step] > 0), target[:, step], prediction
        )
    return stack_steps(raw_steps)


def _previous_values(
    first: Float[Tensor, "batch"],
    target: Float[Tensor, "batch horizon"],
    target_mask: Float[Tensor, "batch horizon"],
) -> Float[Tensor, "batch horizon"]:
    """Return the value before each step, or the last observed one if it is missing.

    `first` is the last observed value of the window.
    """
    values = torch.cat([first.unsqueeze(1), target[:, :-1]], dim=1)
    observed = torch.cat([torch.ones_like(target_mask[:, :1]), target_mask[:, :-1]], dim=1)
    order = torch.arange(values.shape[1], device=values.device).expand_as(values)
    last_observed = torch.where(observed > 0, order, torch.zeros_like(order)).cummax(1).values
    return values.gather(1, last_observed)


State = tuple[Tensor, ...]
"""State of an autoregressive body: tensors whose first axis is the window, or the path that
continues it.
"""


class DirectBody(nn.Module, ABC):
    """A body that computes all steps at once (direct multi-step forecasting)."""

    uses_history: bool = True  # whether the output depends on the values of the window
    needs_history: ClassVar[bool] = True  # whether a window must have an observed value
    uses_series_id: ClassVar[bool] = False  # whether `Inputs` must have `static_codes` and `level`

    def penalty(self) -> Float[Tensor, ""] | None:
        """Return a regularisation term that is added to the training loss, or None."""
        return None

    @abstractmethod
    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output for the head."""


class AutoregressiveBody(nn.Module, ABC):
    """A body that computes one step after the other from the previous value.

    If N sample paths continue each window, the first `shared_state` tensors of the state are shared
    by the paths of a window and have shape (batch, ...). All others have shape (batch * N, ...), the
    paths of a window next to each other.
    """

    shared_state: ClassVar[int] = 0
    needs_history: ClassVar[bool] = True
    uses_series_id: ClassVar[bool] = False
    predicts_window: ClassVar[bool] = False  # whether it learns from the window, see `forward_all_positions`
    block_length: int = 1  # number of steps predicted at once, whose values do not affect each other

    def penalty(self) -> Float[Tensor, ""] | None:
        """Return a regularisation term that is added to the training loss, or None."""
        return None

    @abstractmethod
    def initial_state(self, inputs: Inputs) -> State:
        """Return the state at the cutoff."""

    @abstractmethod
    def step(
        self,
        state: State,
        previous: Float[Tensor, "paths"],
        future: Float[Tensor, "paths future_features"],
        step_index: int,
    ) -> tuple[Float[Tensor, "paths out_features"], State]:
        """Compute the next step.

        Parameters
        ----------
        state : State
        previous : Tensor
            Scaled value of the step before.
        future : Tensor
            Future features of the step.
        step_index : int
            Index of the step, from 0.

        Returns
        -------
        raw : Tensor
            Raw output for the head.
        state : State
            The state after the step.
        """

    def forward_teacher_forced(
        self, inputs: Inputs, previous: Float[Tensor, "batch steps"]
    ) -> Float[Tensor, "batch steps out_features"]:
        """Compute all steps given the values before them.

        This one calls `step` in a loop; subclasses override it if a parallel pass gives the same
        result.
        """
        state = self.initial_state(inputs)
        future = inputs.future_features
        raw_steps: list[Tensor] = []
        for step in range(previous.shape[1]):
            raw, state = self.step(state, previous[:, step], future[:, step], step)
            raw_steps.append(raw)
        return stack_steps(raw_steps)

    def forward_all_positions(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> Float[Tensor, "batch steps out_features"]:
        """Compute all steps that the body predicts from those before them, given those of the horizon:
        the last steps of the window, then the horizon.

        This one predicts no step of the window; a language model learns from every position.
        """
        return self.forward_teacher_forced(inputs, previous)


@dataclass(frozen=True)
class AttentionWeights:
    """Attention weights of one layer; those of a query sum to 1 over the keys.

    Time steps are counted from the cutoff: 0 is the last of the window, 1 the first of the horizon.
    A patch has the position of its last time step. Weights of a variable selection have `variables`
    in place of keys.
    """

    kind: str  # "cross": from the horizon to the window; "self": within the window or the horizon; "... variables"
    layer: int
    weights: Float[Tensor, "batch heads queries keys"]
    queries: Int[Tensor, "queries"]
    keys: Int[Tensor, "keys"]
    variables: tuple[str, ...] = ()


class AttentionBody(ABC):
    """A body that can return its attention weights."""

    @abstractmethod
    def attention_maps(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> list[AttentionWeights]:
        """Return the weights of all layers, given the scaled values before each step."""


def repeat_paths(state: State, n_shared: int, n_paths: int) -> State:
    """Return a state from which `n_paths` paths continue each window; the first `n_shared` tensors
    are not repeated.
    """
    return state[:n_shared] + tuple(tensor.repeat_interleave(n_paths, 0) for tensor in state[n_shared:])


def select_paths(state: State, n_shared: int, parent: Int[Tensor, "paths"]) -> State:
    """Return the state of the paths with index `parent`; the first `n_shared` tensors are
    unchanged.
    """
    return state[:n_shared] + tuple(tensor.index_select(0, parent) for tensor in state[n_shared:])


def stack_steps(
    steps: list[Float[Tensor, "batch out_features"]]
) -> Float[Tensor, "batch steps out_features"]:
    """Stack the outputs of the steps."""
    return torch.stack(steps, dim=1)
