"""Layers are what is written down of them, and the MLP sees everything."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from deepforecast.nn.layers import Dropout
from deepforecast.nn.mlp import ACTIVATIONS, MLP, MLPBody, covariates_width, flatten_covariates
from tests.nn.bodies import FULL, PLAIN, keeps_the_rules, seeded, some_inputs


def mlp(**options: object) -> MLPBody:
    return seeded(lambda: MLPBody(FULL, hidden_sizes=(16, 8), **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("normalization", [None, "layer", "batch"])
def test_the_mlp_keeps_the_rules(normalization: str | None) -> None:
    keeps_the_rules(lambda sizes: MLPBody(sizes, hidden_sizes=(16, 8), dropout=0.1, normalization=normalization))


def test_all_covariates_are_around() -> None:
    inputs = some_inputs(FULL)
    past, future, static = flatten_covariates(inputs)
    assert torch.equal(past.view(5, 12, 2), inputs.past)
    assert torch.equal(future.view(5, 4, 2), inputs.future)
    assert torch.equal(static, inputs.static)
    assert covariates_width(FULL) == 12 * 2 + 4 * 2 + 3
    assert flatten_covariates(some_inputs(PLAIN)) == []
    assert covariates_width(PLAIN) == 0


def test_three_layers_of_512_by_themselves() -> None:
    layers = seeded(lambda: MLPBody(PLAIN)).mlp.layers
    assert [(one.in_features, one.out_features) for one in layers if isinstance(one, nn.Linear)] == [
        *((12, 512), (512, 512), (512, 512), (512, 4)),
    ]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_perceptron_is_its_formula(activation: str) -> None:
    made = seeded(lambda: MLP(6, [5, 4], 3, activation=activation, normalization="layer"))
    x = torch.randn(7, 6, generator=torch.Generator().manual_seed(0))
    function = getattr(nn.functional, activation) if activation != "tanh" else torch.tanh
    first, norm, _, second, other, _, last = made.layers
    hidden = x
    for linear, layer in ((first, norm), (second, other)):
        hidden = hidden @ linear.weight.T + linear.bias
        mean, variance = hidden.mean(1, keepdim=True), hidden.var(1, keepdim=True, unbiased=False)
        hidden = function((hidden - mean) / (variance + 1e-5).sqrt() * layer.weight + layer.bias)
    assert torch.allclose(made(x), hidden @ last.weight.T + last.bias, atol=1e-6)


def test_without_hidden_layers_it_is_linear() -> None:
    made = seeded(lambda: MLP(6, [], 3))
    assert len(made.layers) == 1
    assert made(torch.zeros(2, 6)).equal(made.layers[0].bias.expand(2, 3))


def test_dropout_only_in_training_and_nothing_that_does_nothing() -> None:
    body, inputs = mlp(dropout=0.5), some_inputs(FULL)
    assert not torch.equal(seeded(lambda: body.features(inputs)), seeded(lambda: body.features(inputs), seed=1))
    body.eval()
    assert torch.equal(body.features(inputs), body.features(inputs))
    assert not [one for one in mlp().modules() if isinstance(one, Dropout | nn.Identity)]
