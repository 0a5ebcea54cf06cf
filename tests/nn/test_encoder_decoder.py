"""The layers are those of torch.nn.Transformer, to the rounding, with its weights; what may not be seen is not."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError
from deepforecast.nn.encoder_decoder import Decoder, DecodingPosition, Encoder, FeedForward, LayerOptions
from deepforecast.nn.multihead import AttentionMask, KeyValueProjection, padding_bias
from tests.nn.bodies import seeded

WIDTH, HEADS, ROWS, STEPS, LAYERS = 16, 4, 7, 5, 2


class Ours(nn.Module):
    """Encoder, memory and decoder, called as torch's."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(options, LAYERS), Decoder(options, LAYERS)
        self.memory = KeyValueProjection(options.d_model, options.n_heads, LAYERS)

    def forward(self, rows: Tensor, steps: Tensor, added: Tensor | None) -> Tensor:
        memory = self.memory(self.encoder(rows, AttentionMask(added)))
        return self.decoder(steps, memory, (AttentionMask(causal=True), AttentionMask(added)))


def twins(norm_first: bool, activation: str) -> tuple[nn.Transformer, Ours]:
    """torch's and ours, with the same random weights."""
    torchs = seeded(lambda: nn.Transformer(
        WIDTH, HEADS, LAYERS, LAYERS, 3 * WIDTH, 0.0, activation, batch_first=True, norm_first=norm_first
    ))  # fmt: skip
    drawn = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in torchs.parameters():
            weight.copy_(torch.randn(weight.shape, generator=drawn) / 3)
    ours = Ours(LayerOptions(WIDTH, HEADS, 3 * WIDTH, activation, norm_first))
    ours.load_state_dict(renamed(torchs.state_dict()))
    return torchs, ours


def renamed(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights of torch's layer, or their gradients, by our names; `KeyValueProjection` makes keys and values."""
    found, across = {}, {"weight": [], "bias": []}
    for name, value in theirs.items():
        kind = name.rpartition(".")[2].removeprefix("in_proj_")
        if "multihead_attn.in_proj" in name:
            query, keys, values = value.chunk(3)
            found[name.replace("multihead_attn.in_proj_", "cross.in_proj.")] = query
            across[kind] += [keys, values]
            continue
        for before, after in (
            ("self_attn.in_proj_", "attention.in_proj."), ("self_attn.out_proj", "attention.out_proj"),
            ("multihead_attn.out_proj", "cross.out_proj"), ("linear1", "feedforward.linear1"),
            ("linear2", "feedforward.linear2"),
            ("norm1", "norms.0"), ("norm2", "norms.1"), ("norm3", "norms.2"),
        ):  # fmt: skip
            name = name.replace(before, after)
        found[name] = value
    return {**found, **{f"memory.in_proj.{kind}": torch.cat(parts) for kind, parts in across.items()}}


def sequences() -> tuple[Tensor, Tensor, Tensor]:
    """Rows, steps, and which rows there are: of the second window the first two are none."""
    drawn = torch.Generator().manual_seed(2)
    valid = torch.ones(3, ROWS)
    valid[1, :2] = 0.0
    return torch.randn(3, ROWS, WIDTH, generator=drawn), torch.randn(3, STEPS, WIDTH, generator=drawn), valid


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
def test_it_is_torchs(norm_first: bool, activation: str) -> None:
    torchs, ours = twins(norm_first, activation)
    rows, steps, valid = sequences()
    later = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
    none = valid == 0
    expected = torchs(rows, steps, tgt_mask=later, src_key_padding_mask=none, memory_key_padding_mask=none)
    found = ours(rows, steps, padding_bias(valid))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    for one in (found, expected):
        (one * torch.arange(one.numel()).view(one.shape).cos()).sum().backward()
    theirs = renamed({name: weight.grad for name, weight in torchs.named_parameters()})
    mine = {name: weight.grad for name, weight in ours.named_parameters()}
    assert set(mine) == set(theirs)
    for name, gradient in mine.items():
        torch.testing.assert_close(gradient, theirs[name], atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize(("norm_first", "normalization"), list(product((True, False), ("layer", "rms", "batch"))))
def test_a_step_with_a_cache_is_the_step_without(norm_first: bool, normalization: str) -> None:
    options = LayerOptions(WIDTH, HEADS, 24, "swiglu", norm_first, normalization, 0.1)
    ours = seeded(lambda: Ours(options)).eval()
    rows, steps, valid = sequences()
    added = padding_bias(valid)
    expected = ours(rows, steps, added)
    for gradients in (False, True):
        with torch.set_grad_enabled(gradients):
            memory = ours.memory(ours.encoder(rows, AttentionMask(added)))
            caches = [rows.new_empty(3, 2, HEADS, 0, WIDTH // HEADS)] * LAYERS
            for number in range(STEPS):
                at = DecodingPosition(number, number + 1 if gradients else STEPS)
                found, caches = ours.decoder.step(steps[:, number], caches, memory, at, (AttentionMask(), AttentionMask(added)))
                torch.testing.assert_close(found, expected[:, number], atol=1e-6, rtol=1e-5)
                assert caches[0].shape[3] == at.cache_size


def test_gradients_flow_through_steps_as_through_the_whole() -> None:
    ours = seeded(lambda: Ours(LayerOptions(WIDTH, HEADS, 24))).double()
    rows, steps, valid = (one.double() for one in sequences())
    added, weights = padding_bias(valid), list(ours.parameters())
    whole = torch.autograd.grad(ours(rows, steps, added).square().sum(), weights)
    memory, caches = (
        ours.memory(ours.encoder(rows, AttentionMask(added))),
        [rows.new_empty(3, 2, HEADS, 0, WIDTH // HEADS)] * LAYERS,
    )
    total = rows.new_zeros(())
    for number in range(STEPS):
        looks = AttentionMask(), AttentionMask(added)
        found, caches = ours.decoder.step(steps[:, number], caches, memory, DecodingPosition(number, number + 1), looks)
        total = total + found.square().sum()
    torch.testing.assert_close(torch.autograd.grad(total, weights), whole, atol=1e-9, rtol=1e-9)


def test_no_step_sees_a_later_one() -> None:
    ours = seeded(lambda: Ours(LayerOptions(WIDTH, HEADS, 24))).eval()
    rows, steps, valid = sequences()
    for number in range(STEPS):
        told = steps.clone().requires_grad_()
        found = ours(rows, told, padding_bias(valid))[:, number]
        (found * torch.linspace(0.5, 1.5, found.shape[-1])).sum().backward()  # the plain sum after a norm never moves
        assert (told.grad[:, number + 1 :] == 0).all()
        assert (told.grad[:, : number + 1].abs().sum((0, 2)) > 0).all()


def test_weights_are_kept_when_asked_for_and_change_nothing() -> None:
    ours = seeded(lambda: Ours(LayerOptions(WIDTH, HEADS, 24))).eval()
    rows, steps, valid = sequences()
    added, kept = padding_bias(valid), list[Tensor]()
    memory = ours.memory(ours.encoder(rows, AttentionMask(added), kept))
    found = ours.decoder(steps, memory, (AttentionMask(causal=True), AttentionMask(added)), kept)
    torch.testing.assert_close(found, ours(rows, steps, added), atol=1e-6, rtol=1e-5)
    assert [tuple(one.shape[2:]) for one in kept] == [(ROWS, ROWS)] * 2 + [(STEPS, STEPS), (STEPS, ROWS)] * 2
    for one in kept:
        torch.testing.assert_close(one.sum(-1), torch.ones(one.shape[:-1]), atol=1e-6, rtol=0)
    assert (kept[2].triu(1) == 0).all()
    assert (kept[3][1, :, :, :2] == 0).all()


def test_the_small_network_bends_as_its_name_says() -> None:
    rows = sequences()[0]
    for name, bent in (("relu", torch.relu), ("gelu", nn.functional.gelu)):
        part = seeded(lambda name=name: FeedForward(WIDTH, 24, name))
        torch.testing.assert_close(part(rows), part.linear2(bent(part.linear1(rows))))
    part = seeded(lambda: FeedForward(WIDTH, 24, "swiglu"))
    gate, value = part.linear1(rows).chunk(2, -1)
    torch.testing.assert_close(part(rows), part.linear2(gate * gate.sigmoid() * value))


def test_what_there_is_none_of_is_refused() -> None:
    with pytest.raises(ParameterError, match="`activation` must be one of 'relu', 'gelu', 'swiglu', got tanh"):
        FeedForward(WIDTH, 24, "tanh")
    with pytest.raises(ParameterError, match=r"d_model=16 and n_heads=5\. Use n_heads=4 or d_model=15"):
        Encoder(LayerOptions(WIDTH, 5), 1)
