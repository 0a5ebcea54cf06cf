"""Self-supervised pretraining of encoders over patches: objectives in the manner of BERT, GPT and XLNet.

An objective hides a part of each window and scores how well the network infers it from the rest. Its unit is a patch
without overlap: the last `stride` time steps of each token. Values are scaled as in forecasts, so an error is in units
of the window's scale, and missing values do not count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import CapabilityError, ParameterError, format_value
from deepforecast.nn.batch import Batch, Inputs
from deepforecast.nn.encoder_decoder import EncoderLayer
from deepforecast.nn.multihead import AttentionMask, apply_rotary, attention, merge_heads, split_heads
from deepforecast.nn.network import ForecastNetwork
from deepforecast.nn.transformer import PatchEncoder, Patching

MASKED, REPLACED = 0.8, 0.9  # of the chosen patches 80 % are masked, 10 % replaced, 10 % left
TEMPERATURE = 0.1  # of the contrastive loss


class Objective(nn.Module, ABC):
    """Base class of pretraining objectives.

    A subclass has a `name`, creates in `setup` the layers that it needs besides the network, and returns its loss of a
    batch. It may draw random numbers from torch's generator, which is seeded by the step.
    """

    name: ClassVar[str]
    trains_forecast: bool = False  # whether the network can forecast without fine-tuning

    def setup(self, network: ForecastNetwork) -> None:
        """Create the layers for the sizes of the network; they are discarded after pretraining."""

    @abstractmethod
    def loss(self, network: ForecastNetwork, batch: Batch) -> Tensor:
        """Return the loss of a batch of windows, a scalar."""


class MaskedPatches(Objective):
    """Predict masked patches from all others, as BERT predicts masked words (Devlin et al. 2019, arXiv:1810.04805).

    Of the chosen patches 80 % are masked: their values are hidden and a learned vector is added to their token; 10 %
    have the values of another window, and 10 % stay as they are. So the network cannot tell which patches it may trust.
    The loss is the mean squared error of the chosen patches. Their covariates stay visible.

    Parameters
    ----------
    fraction : float, default 0.15
        Fraction of the patches that are predicted, at least one per window.
    span : int, default 1
        Number of consecutive patches that are chosen together.
    """

    name = "masked_patches"

    def __init__(self, fraction: float = 0.15, span: int = 1) -> None:
        super().__init__()
        self.fraction, self.span = _check_fraction(fraction), _check_span(span)

    def setup(self, network: ForecastNetwork) -> None:
        """Create the mask vector and the projection from tokens to values."""
        encoder = patch_encoder(network, self.name)
        self.mask_token = nn.Parameter(0.02 * torch.randn(encoder.width))
        self.reconstruction = nn.Linear(encoder.width, encoder.patches.stride)

    def loss(self, network: ForecastNetwork, batch: Batch) -> Tensor:
        """Return the mean squared error of the chosen patches."""
        encoder, inputs = patch_encoder(network, self.name), network.inputs(batch)[0]
        patches = encoder.patches
        is_target = choose_patches(cut_patches(inputs.observed, patches).amax(2), self.fraction, self.span)
        draw = torch.rand(is_target.shape, device=is_target.device)
        masked, replaced = is_target & (draw < MASKED), is_target & (draw >= MASKED) & (draw < REPLACED)
        corrupted = _replace_patches(inputs, replaced, inputs.y.roll(1, 0), inputs.observed.roll(1, 0), patches)
        corrupted = _replace_patches(corrupted, masked, torch.zeros_like(inputs.y), torch.zeros_like(inputs.y), patches)
        tokens = encoder.embed(corrupted) + masked.unsqueeze(-1) * self.mask_token
        hidden = _encode(encoder, tokens, inputs, encoder.padding(inputs))
        return _squared_error(self.reconstruction(hidden), inputs, patches, is_target)


class MaskedSpans(MaskedPatches):
    """Predict masked spans of consecutive patches, as SpanBERT (Joshi et al. 2020, arXiv:1907.10529).

    A single patch can often be interpolated from its neighbours; a span cannot.

    Parameters
    ----------
    fraction : float, default 0.3
        Fraction of the patches that are predicted, at least one span per window.
    span : int, default 3
        Number of patches per span.
    """

    name = "masked_spans"

    def __init__(self, fraction: float = 0.3, span: int = 3) -> None:
        super().__init__(fraction, span)


class NextPatch(Objective):
    """Predict each patch from those before it, as GPT predicts the next word (Radford et al. 2018).

    The encoder gets a causal mask, so all patches of a window are predicted in one pass; the loss is their mean squared
    error. A network that is causal itself (`DecoderOnly`) is trained as in `fit`, by the loss of its head on all
    positions of the window and the horizon, and can forecast without fine-tuning.
    """

    name = "next_patch"

    def setup(self, network: ForecastNetwork) -> None:
        """Create the projection from tokens to values, if the network is not causal itself."""
        self.trains_forecast = bool(getattr(network.body, "predicts_window", False))
        if not self.trains_forecast:
            encoder = patch_encoder(network, self.name)
            self.reconstruction = nn.Linear(encoder.width, encoder.patches.stride)

    def loss(self, network: ForecastNetwork, batch: Batch) -> Tensor:
        """Return the mean squared error of all patches after the first, or the loss of the head."""
        if self.trains_forecast:
            return network.loss(batch)
        encoder, inputs = patch_encoder(network, self.name), network.inputs(batch)[0]
        n_tokens = encoder.patches.n_patches
        causal_bias = torch.full((n_tokens, n_tokens), -torch.inf, device=inputs.y.device).triu(1)
        hidden = _encode(encoder, encoder.embed(inputs), inputs, encoder.padding(inputs) + causal_bias)
        prediction = F.pad(self.reconstruction(hidden[:, :-1]), (0, 0, 1, 0))  # nothing predicts the first patch
        is_target = torch.arange(n_tokens, device=hidden.device).expand(len(hidden), -1) > 0
        return _squared_error(prediction, inputs, encoder.patches, is_target)


class NextWindow(Objective):
    """Tell whether the second half of a window follows its first half, as BERT's next-sentence prediction.

    With probability 1/2 the values of the second half are those of another window. A learned summary token takes the
    place of the oldest patch, a segment embedding marks the halves, and the loss is the binary cross-entropy of a
    linear map of the encoded summary.

    With `contrastive` the halves are encoded apart, and the summary of a first half must be more similar to that of its
    own second half than to those of all other windows of the batch (InfoNCE, van den Oord et al. 2018, arXiv:1807.03748).

    Parameters
    ----------
    contrastive : bool, default False
        Whether to compare summaries rather than classify pairs.
    """

    name = "next_window"

    def __init__(self, contrastive: bool = False) -> None:
        super().__init__()
        self.contrastive = contrastive

    def setup(self, network: ForecastNetwork) -> None:
        """Create the summary token, the segment embeddings and the classifier."""
        encoder = patch_encoder(network, self.name)
        _require_patches(encoder.patches, 3, self.name)
        self.summary = nn.Parameter(0.02 * torch.randn(encoder.width))
        self.segments = nn.Parameter(0.02 * torch.randn(2, encoder.width))
        if not self.contrastive:
            self.classifier = nn.Linear(encoder.width, 1)

    def loss(self, network: ForecastNetwork, batch: Batch) -> Tensor:
        """Return the cross-entropy of the pairs."""
        encoder, inputs = patch_encoder(network, self.name), network.inputs(batch)[0]
        n_tokens = encoder.patches.n_patches
        in_second_segment = torch.arange(n_tokens, device=inputs.y.device) >= (n_tokens + 1) // 2
        if self.contrastive:
            first, second = (
                F.normalize(self._summary(encoder, inputs, half, in_second_segment), dim=1)
                for half in (~in_second_segment, in_second_segment)
            )
            target = torch.arange(len(first), device=first.device)
            return F.cross_entropy(first @ second.T / TEMPERATURE, target)
        swapped = (torch.rand(len(inputs.y), device=inputs.y.device) < 0.5) & (len(inputs.y) > 1)
        pairs = _replace_patches(
            inputs, swapped.unsqueeze(1) & in_second_segment, inputs.y.roll(1, 0), inputs.observed.roll(1, 0), encoder.patches
        )
        logits = self.classifier(self._summary(encoder, pairs, torch.ones_like(in_second_segment), in_second_segment)).squeeze(1)
        return F.binary_cross_entropy_with_logits(logits, (~swapped).to(logits))

    def _summary(self, encoder: PatchEncoder, inputs: Inputs, visible: Tensor, in_second_segment: Tensor) -> Tensor:
        """Return the encoded summary (batch, d_model) of the patches that are `visible` (tokens,)."""
        tokens = encoder.embed(inputs) + self.segments[in_second_segment.long()]
        # In place of the first patch: an additional token would need a position; so all positional encodings work unchanged.
        tokens = torch.cat([self.summary.expand(len(tokens), 1, -1), tokens[:, 1:]], dim=1)
        visibility_bias = torch.zeros_like(visible, dtype=tokens.dtype).masked_fill(~visible, -torch.inf)
        bias = encoder.padding(inputs) + visibility_bias
        bias = torch.cat([torch.zeros_like(bias[..., :1]), bias[..., 1:]], dim=-1)  # the summary itself is visible
        return _encode(encoder, tokens, inputs, bias)[:, 0]


class PermutationOrder(Objective):
    """Predict patches in a random order, each from those before it in this order, as XLNet (Yang et al. 2019, arXiv:1906.08237).

    Two-stream attention: the content stream of a patch attends to itself and the patches before it in the order, the
    query stream, which knows only the position of its patch, to those before it. The loss is the mean squared error of
    the last patches of the order, which have seen most of the window. Patches must not overlap.

    Parameters
    ----------
    fraction : float, default 1/6
        Fraction of the patches that are predicted, at least one per window.
    """

    name = "permutation_order"

    def __init__(self, fraction: float = 1 / 6) -> None:
        super().__init__()
        self.fraction = _check_fraction(fraction)

    def setup(self, network: ForecastNetwork) -> None:
        """Create the initial vector of the query stream and the projection from tokens to values."""
        encoder = patch_encoder(network, self.name)
        patches = encoder.patches
        if patches.stride != patches.length:
            raise ParameterError(
                f"The objective {self.name!r} requires patches without overlap, got patch_length={patches.length} and "
                f"stride={patches.stride}.",
                hint=f"Set stride={patches.length}.",
                parameter="stride",
            )
        _require_patches(patches, 2, self.name)
        self.query = nn.Parameter(0.02 * torch.randn(encoder.width))
        self.reconstruction = nn.Linear(encoder.width, patches.stride)

    def loss(self, network: ForecastNetwork, batch: Batch) -> Tensor:
        """Return the mean squared error of the last patches of the order."""
        encoder, inputs = patch_encoder(network, self.name), network.inputs(batch)[0]
        observed = cut_patches(inputs.observed, encoder.patches).amax(2)
        # Ranks in a random order (batch, tokens); patches without a value come first.
        rank = (torch.rand(observed.shape, device=observed.device) + observed).argsort(1).argsort(1)
        before = rank.unsqueeze(1) < rank.unsqueeze(2)  # (batch, queries, keys)
        itself = torch.eye(rank.shape[1], dtype=torch.bool, device=rank.device)
        masks = [
            encoder.positions.past_mask(
                encoder.padding(inputs) + torch.zeros_like(before, dtype=torch.float32).masked_fill(~visible, -torch.inf)[:, None]
            )
            for visible in (before | itself, before)
        ]
        content = encoder.add_positions(encoder.embed(inputs), inputs)
        query = encoder.add_positions(self.query.expand_as(content), inputs)
        for layer in encoder.encoder.layers:
            query = _attend_from(cast(EncoderLayer, layer), query, content, masks[1])
            content = layer(content, masks[0])
        n_predicted = max(round(self.fraction * rank.shape[1]), 1)
        prediction = self.reconstruction(encoder.encoder.norm(query))
        return _squared_error(prediction, inputs, encoder.patches, rank >= rank.shape[1] - n_predicted)


OBJECTIVES: dict[str, type[Objective]] = {
    objective.name: objective for objective in (MaskedPatches, MaskedSpans, NextPatch, NextWindow, PermutationOrder)
}
"""Objectives by name."""


class PretrainingNetwork(nn.Module):
    """A network and its objectives, for the trainer: `loss` is the weighted sum of those of the objectives.

    Parameters
    ----------
    network : ForecastNetwork
    objectives : sequence of Objective
    weights : sequence of float
    """

    def __init__(self, network: ForecastNetwork, objectives: Sequence[Objective], weights: Sequence[float]) -> None:
        super().__init__()
        self.network, self.weights, self.sizes = network, tuple(weights), network.sizes
        for objective in objectives:
            objective.setup(network)
        self.objectives = nn.ModuleList(objectives)

    @property
    def n_multiplications(self) -> int:
        """Approximate number of multiplications per window."""
        return self.network.n_multiplications

    def loss(self, batch: Batch, teacher_forcing_ratio: float | None = None) -> Tensor:
        """Return the weighted sum of the losses of a batch, a scalar."""
        losses = [
            weight * cast(Objective, objective).loss(self.network, batch)
            for objective, weight in zip(self.objectives, self.weights, strict=True)
        ]
        return torch.stack(losses).sum()


def patch_encoder(network: ForecastNetwork, objective: str) -> PatchEncoder:
    """Return the encoder of the network; raise `CapabilityError` if it has none, and so cannot use the objective."""
    for module in network.body.children():
        if isinstance(module, PatchEncoder):
            return module
    raise CapabilityError(
        f"The objective {objective!r} requires a network with an encoder over patches, which {type(network.body).__name__} "
        "does not have.",
        hint="Pretrain a Transformer or PatchTST, or a DecoderOnly with objective='next_patch'. Any network can be fitted "
        "to other series and then forecast with predict(frame=...).",
        parameter="objective",
    )


def cut_patches(values: Tensor, patches: Patching) -> Tensor:
    """Cut the time steps (batch, input_size) into patches without overlap, (batch, tokens, stride).

    The last patch ends at the last time step; the first is padded with zeros in front.

    Examples
    --------
    >>> cut_patches(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]), Patching(5, 2, 2)).tolist()
    [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]]
    """
    n_padding = patches.n_patches * patches.stride - patches.input_size
    return F.pad(values, (n_padding, 0)).view(len(values), patches.n_patches, patches.stride)


def choose_patches(observed: Tensor, fraction: float, span: int = 1) -> Tensor:
    """Choose random patches (or spans of them) of each window, (batch, tokens) bool.

    `observed` (batch, tokens) is 0 for patches without a value, which are chosen last. At least one patch is chosen.
    """
    n_tokens = observed.shape[1]
    span = min(span, n_tokens)
    n_spans = max(round(fraction * n_tokens / span), 1)
    score = torch.rand(observed.shape, device=observed.device) + observed
    start = score[:, : n_tokens - span + 1].topk(min(n_spans, n_tokens - span + 1), dim=1).indices
    chosen = torch.zeros_like(observed, dtype=torch.bool)
    for offset in range(span):
        chosen = chosen.scatter(1, start + offset, True)
    return chosen


def _replace_patches(inputs: Inputs, replaced: Tensor, y: Tensor, observed: Tensor, patches: Patching) -> Inputs:
    """Return the inputs with other values `y` and masks `observed` in the replaced patches (batch, tokens)."""
    steps = replaced.repeat_interleave(patches.stride, 1)[:, -patches.input_size :]
    return replace(inputs, y=torch.where(steps, y, inputs.y), observed=torch.where(steps, observed, inputs.observed))


def _encode(encoder: PatchEncoder, tokens: Tensor, inputs: Inputs, bias: Tensor) -> Tensor:
    """Encode tokens (batch, tokens, d_model) with a bias on the attention scores, broadcast to (batch, heads, tokens, tokens)."""
    tokens = encoder.add_positions(tokens, inputs)
    return cast(Tensor, encoder.encoder(tokens, encoder.positions.past_mask(bias)))


def _attend_from(layer: EncoderLayer, query: Tensor, content: Tensor, mask: AttentionMask) -> Tensor:
    """Apply a layer to the query stream, which attends to the content stream; all (batch, tokens, d_model)."""
    projection, n_heads = layer.attention, layer.attention.n_heads
    visible = layer.norms[0](content) if layer.norm_first else content
    _, keys, values = split_heads(projection.in_proj(visible), 3, n_heads)
    keys = apply_rotary(keys, mask.key_rotation)

    def attend(hidden: Tensor) -> Tensor:
        heads = apply_rotary(split_heads(projection.in_proj(hidden), 3, n_heads)[0], mask.query_rotation)
        return cast(Tensor, projection.out_proj(merge_heads(attention(heads, keys, values, mask))))

    return layer.sublayer(1, layer.sublayer(0, query, attend), layer.feedforward)


def _squared_error(prediction: Tensor, inputs: Inputs, patches: Patching, is_target: Tensor) -> Tensor:
    """Return the mean squared error of the observed values of the target patches (batch, tokens), 0 if there are none."""
    weight = cut_patches(inputs.observed, patches) * is_target.unsqueeze(-1)
    errors = (prediction - cut_patches(inputs.y, patches)) ** 2 * weight
    return errors.sum() / weight.sum().clamp(min=1.0)


def _check_fraction(fraction: float) -> float:
    if not 0 < fraction < 1:
        raise ParameterError(
            f"`fraction` must be between 0 and 1, got {format_value(fraction)}.", parameter="fraction", value=fraction
        )
    return fraction


def _check_span(span: int) -> int:
    if span < 1:
        raise ParameterError(f"`span` must be at least 1, got {format_value(span)}.", parameter="span", value=span)
    return span


def _require_patches(patches: Patching, minimum: int, objective: str) -> None:
    """Raise `ParameterError` if a window has fewer patches than the objective needs."""
    if patches.n_patches < minimum:
        raise ParameterError(
            f"The objective {objective!r} requires at least {minimum} patches per window, got {patches.n_patches} "
            f"(input_size={patches.input_size}, stride={patches.stride}).",
            hint="Set a larger input_size, or a smaller patch_length and stride.",
            parameter="input_size",
        )
