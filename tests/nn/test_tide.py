"""TiDE: the body equals the equations of the paper, window by window and step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.tide import ResidualBlock, TiDEBody, TiDEOptions
from tests.nn.bodies import FULL, keeps_the_rules, seeded, shuffled, some_inputs

SMALL = TiDEOptions(
    hidden_size=8,
    encoder_layers=2,
    decoder_layers=2,
    decoder_output_dim=5,
    temporal_decoder_dim=6,
    temporal_width=2,
    temporal_hidden_size=7,
)
LOCATED = replace(FULL, location_slice=slice(1, 2))


@pytest.mark.parametrize("normalization", [None, "layer", "batch"])
def test_tide_keeps_the_rules(normalization: str | None) -> None:
    keeps_the_rules(lambda sizes: TiDEBody(sizes, replace(SMALL, normalization=normalization, dropout=0.1)))


def plain_block(block: ResidualBlock, x: Tensor) -> Tensor:
    """W_2 relu(W_1 x + b_1) + b_2 + W_3 x + b_3, normalised, of one vector."""
    hidden = (block.hidden.weight @ x + block.hidden.bias).clamp(min=0)
    y = block.out.weight @ hidden + block.out.bias + block.skip.weight @ x + block.skip.bias
    if isinstance(block.norm, nn.LayerNorm):
        y = (y - y.mean()) / (y.var(unbiased=False) + 1e-5).sqrt() * block.norm.weight + block.norm.bias
    return y


def plain_tide(body: TiDEBody, inputs: Inputs, window: int, sizes: InputSizes, options: TiDEOptions) -> Tensor:
    """The raw output of one window, (horizon, out_features)."""
    assert body.past_projection is not None
    assert body.future_projection is not None
    past = [plain_block(body.past_projection, x) for x in inputs.past[window]]
    future = [plain_block(body.future_projection, x) for x in inputs.future[window]]
    hidden = torch.cat([inputs.y[window], *past, *future, inputs.static[window]])
    for block in body.dense:
        hidden = plain_block(block, hidden)  # type: ignore[arg-type]
    located = list(range(sizes.out_features))[sizes.location_slice or slice(None)]
    steps = []
    for step in range(sizes.horizon):
        vector = hidden[step * options.decoder_output_dim : (step + 1) * options.decoder_output_dim]
        raw = plain_block(body.temporal_decoder, torch.cat([vector, future[step]])).clone()
        for rank, feature in enumerate(located):
            row = step * len(located) + rank
            raw[feature] += body.skip.weight[row] @ inputs.y[window] + body.skip.bias[row]
        steps.append(raw)
    return torch.stack(steps)


@pytest.mark.parametrize("sizes", [FULL, LOCATED], ids=["all features", "one location"])
@pytest.mark.parametrize("normalization", [None, "layer"])
def test_body_is_the_model_of_the_paper(normalization: str | None, sizes: InputSizes) -> None:
    options = replace(SMALL, normalization=normalization)
    body, inputs = shuffled(seeded(lambda: TiDEBody(sizes, options))), some_inputs(sizes)
    assert isinstance(body, TiDEBody)
    expected = torch.stack([plain_tide(body, inputs, window, sizes, options) for window in range(5)])
    features = body.features(inputs)
    torch.testing.assert_close(features, expected, atol=1e-4, rtol=1e-4)
    direction = torch.linspace(-1, 1, features.numel()).view_as(features)
    weights = list(body.parameters())
    gradients, expected_gradients = (
        torch.autograd.grad((output * direction).sum(), weights) for output in (features, expected)
    )
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, atol=2e-4, rtol=1e-3)


def test_temporal_decoder_has_the_covariates_of_its_step() -> None:
    body, inputs = shuffled(seeded(lambda: TiDEBody(FULL, SMALL))), some_inputs(FULL)
    with torch.no_grad():
        body.get_submodule("dense.0.hidden").weight.zero_()  # covariates reach the output past the encoder only
        body.get_submodule("dense.0.skip").weight.zero_()
        for step in range(FULL.horizon):
            future = inputs.future.clone()
            future[:, step] += 1
            change = (body.features(replace(inputs, future=future)) - body.features(inputs)).abs().amax((0, 2))
            assert (change > 1e-4).tolist() == [other == step for other in range(FULL.horizon)]


def test_parameter_count_of_the_configuration_of_the_paper() -> None:
    # ETTh1, horizon 96 (scripts/etth1.sh of the authors): window 720, hidden 512, num_layers=2, which their code turns into
    # one residual block each of encoder (512) and decoder (32 * 96 = 3,072), time_encoder_dims 64 and 4,
    # final_decoder_hidden 16; here with 8 calendar features.
    def block(n_in: int, hidden: int, n_out: int, norm: bool = True) -> int:
        """Weights and biases of W_1, W_2 and W_3, and of the layer normalisation."""
        return (n_in + 1) * hidden + (hidden + 1) * n_out + (n_in + 1) * n_out + 2 * n_out * norm

    options = TiDEOptions(512, 1, 1, 32, 16, 4, 64, normalization="layer")
    body = TiDEBody(InputSizes(720, 96, 1, past=8, future=8), options)
    dense = block(720 + 4 * (720 + 96), 512, 512) + block(512, 512, 3072)
    skip, temporal_decoder, projection = 721 * 96, block(32 + 4, 16, 1, norm=False), block(8, 64, 4)
    # 4,344,320 + 3,420,672, 69,216, 646 and 2 * 880. The authors have one projection (880 less), normalise the output (2 more)
    # and embed the 7 series by 16 numbers (7 * 16 + 2 * 16 * 512 = 16,496 more).
    count = dense + skip + temporal_decoder + 2 * projection
    assert sum(weight.numel() for weight in body.parameters()) == count == 7_836_614
