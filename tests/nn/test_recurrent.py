"""The layers are the textbook's cells, by themselves and stacked; row after row they are what they are at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError
from deepforecast.nn import recurrent
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions
from tests.nn.bodies import seeded

CELLS = [
    RecurrentOptions("lstm"),
    RecurrentOptions("gru"),
    RecurrentOptions("gru", reset="before"),
    RecurrentOptions("rnn"),
    RecurrentOptions("rnn", nonlinearity="relu"),
]


def textbook(options: RecurrentOptions, x: Tensor, state: list[Tensor], weights: list[Tensor]) -> list[Tensor]:
    """One row: [H] or [H, C] from [H] or [H, C] of the row before, as the equations have it."""
    w, u, b, b_state = weights
    h = state[0]
    if options.cell == "rnn":  # H = phi(X W + H W + b)
        total = x @ w.T + h @ u.T + b + b_state
        return [torch.tanh(total) if options.nonlinearity == "tanh" else total.clamp(min=0)]
    if options.cell == "lstm":
        i, f, c_new, o = (x @ w_one.T + h @ u_one.T + b_one for w_one, u_one, b_one in gates(4, w, u, b + b_state))
        c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(c_new)
        return [torch.sigmoid(o) * torch.tanh(c), c]
    # GRU. In the paper the reset gate multiplies H before the matrix, tanh(X W + (R * H) W + b); torch, after cuDNN, after it.
    (w_r, w_z, w_n), (u_r, u_z, u_n), (b_r, b_z, b_n), (d_r, d_z, d_n) = (one.chunk(3) for one in weights)
    r = torch.sigmoid(x @ w_r.T + b_r + h @ u_r.T + d_r)
    z = torch.sigmoid(x @ w_z.T + b_z + h @ u_z.T + d_z)
    recurrent_part = r * (h @ u_n.T + d_n) if options.reset == "after" else (r * h) @ u_n.T + d_n
    h_new = torch.tanh(x @ w_n.T + b_n + recurrent_part)
    return [z * h + (1 - z) * h_new]


def gates(number: int, *weights: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(one.chunk(number) for one in weights), strict=True)


def one_way(options: RecurrentOptions, rows: Tensor, weights: list[Tensor], backwards: bool) -> tuple[Tensor, list[Tensor]]:
    zeros = rows.new_zeros(len(rows), options.hidden_size)
    state, found = [zeros, zeros] if options.cell == "lstm" else [zeros], []
    for row in rows.flip(1).unbind(1) if backwards else rows.unbind(1):
        state = textbook(options, row, state, weights)
        found.append(state[0])
    out = torch.stack(found, dim=1)
    return out.flip(1) if backwards else out, state


def by_the_book(layers: Recurrent, rows: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """What the layers give, with nothing of torch but products and functions of numbers."""
    options, states, out = layers.options, [], rows
    for layer in range(options.n_layers):
        cells, place = (layers.cells[0], layer) if layers.stacked else (layers.cells[layer], 0)
        held = dict(cells.named_parameters())
        ways = []
        for way in ("", "_reverse")[: 2 if options.bidirectional else 1]:
            weights = [held[f"{kind}_l{place}{way}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            found, state = one_way(options, layers.norms[layer - 1](out) if layer else out, weights, bool(way))
            ways.append(found)
            states.append(state)
        fresh = torch.cat(ways, dim=-1)
        out = out + fresh if layer and options.residual else fresh
    return layers.norms[-1](out), tuple(one for kind in zip(*states, strict=True) for one in kind)


def some_rows(windows: int = 3, length: int = 5, width: int = 4) -> Tensor:
    return torch.randn(windows, length, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_cells_are_those_of_the_textbook(cell: RecurrentOptions, n_layers: int, bidirectional: bool) -> None:
    for residual, normalization in ((False, None), (True, None), (True, "layer")):
        layout = {"n_layers": n_layers, "bidirectional": bidirectional, "residual": residual, "normalization": normalization}
        options = replace(cell, hidden_size=6, **layout)
        layers = seeded(lambda options=options: Recurrent(4, options)).double()
        assert layers.stacked == (normalization is None and not (residual and n_layers > 1))
        rows = some_rows().requires_grad_()
        found, expected = layers(rows), by_the_book(layers, rows)
        wanted = [rows, *layers.parameters()]
        for one, other in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)
        gradients = [torch.autograd.grad(total(*one), wanted, allow_unused=True) for one in (found, expected)]
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)


def total(out: Tensor, state: tuple[Tensor, ...]) -> Tensor:
    """One number on which everything has a bearing."""
    return sum((one * torch.arange(one.numel()).view(one.shape).cos()).sum() for one in (out, *state))


@pytest.fixture(params=["cells", "fused"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to take a step, whatever the size."""
    monkeypatch.setattr(recurrent, "MIN_FUSED_SIZE", 1 if request.param == "fused" else 10**9)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_row_by_row_is_the_same_as_all_at_once(cell: RecurrentOptions) -> None:
    for n_layers, residual, normalization in product((1, 3), (False, True), (None, "layer", "batch")):
        layout = {"n_layers": n_layers, "residual": residual, "normalization": normalization}
        options = replace(cell, hidden_size=6, dropout=0.2, **layout)
        layers = seeded(lambda options=options: Recurrent(4, options)).double().eval()
        rows = some_rows()
        out, after = layers(rows)
        begun, state = layers(rows[:, :2])
        found = [*begun.unbind(1)]
        for row in rows[:, 2:].unbind(1):
            fresh, state = layers.step(row, state)
            found.append(fresh)
        torch.testing.assert_close(torch.stack(found, 1), out, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(state, after, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(layers(rows[:, 2:], layers(rows[:, :2])[1])[0], out[:, 2:], atol=1e-9, rtol=1e-9)


def test_a_state_is_a_tuple_of_windows() -> None:
    for cell, kinds in (("lstm", 2), ("gru", 1), ("rnn", 1)):
        for n_layers, bidirectional, normalization in product((1, 3), (False, True), (None, "layer")):
            options = RecurrentOptions(cell, 6, n_layers, bidirectional, normalization=normalization)
            out, state = seeded(lambda options=options: Recurrent(4, options))(some_rows().float())
            assert out.shape == (3, 5, options.output_size)
            assert [one.shape for one in state] == [(3, 6)] * (kinds * n_layers * (2 if bidirectional else 1))


def test_many_windows_are_fused_and_few_are_not() -> None:
    layers = Recurrent(4, RecurrentOptions(hidden_size=60))
    assert [layers._uses_fused_kernel(torch.zeros(windows, 4)) for windows in (1, 99, 100)] == [False, False, True]
    assert not layers._uses_fused_kernel(torch.zeros(100, 4, device="meta"))
    assert not Recurrent(4, RecurrentOptions("gru", 60))._uses_fused_kernel(torch.zeros(100, 4))


def test_dropout_is_between_layers_and_only_in_training() -> None:
    rows = some_rows().float()
    for normalization in (None, "layer"):
        options = RecurrentOptions(n_layers=2, hidden_size=6, dropout=0.5, normalization=normalization)
        layers = seeded(lambda options=options: Recurrent(4, options))
        one, other = (seeded(lambda: layers(rows)[0], seed) for seed in (0, 1))  # noqa: B023
        assert not torch.equal(one, other)
        assert torch.equal(one, seeded(lambda: layers(rows)[0], 0))  # noqa: B023
        layers.eval()
        assert torch.equal(layers(rows)[0], layers(rows)[0])
    single = seeded(lambda: Recurrent(4, RecurrentOptions(hidden_size=6, dropout=0.5)))  # which torch would warn of
    assert torch.equal(single(rows)[0], single(rows)[0])


def test_batch_normalisation_knows_training_from_use() -> None:
    layers = seeded(lambda: Recurrent(4, RecurrentOptions(hidden_size=6, n_layers=2, normalization="batch")))
    rows = some_rows().float()
    out, _ = layers(rows)
    torch.testing.assert_close(out.mean((0, 1)), torch.zeros(6), atol=1e-6, rtol=0)
    layers.eval()
    used = layers(rows)[0]
    assert (used - out).abs().max() > 0.1
    torch.testing.assert_close(layers(rows[:1])[0], used[:1])  # a window does not depend on the others


def test_a_last_layer_that_is_not_read_is_not_normalised() -> None:
    options = RecurrentOptions(n_layers=2, normalization="layer")
    assert [type(norm) for norm in Recurrent(4, options, uses_output=False).norms] == [nn.LayerNorm, nn.Identity]


@pytest.mark.usefixtures("way")
def test_the_memory_lasts_in_bfloat16() -> None:
    rows = some_rows().float()
    for cell in CELLS:
        layers = seeded(lambda cell=cell: Recurrent(4, replace(cell, hidden_size=6, n_layers=2)))
        out, state = layers(rows)
        with torch.autocast("cpu", torch.bfloat16):
            rough, begun = layers(rows[:, :-1])
            last, after = layers.step(rows[:, -1], begun)
        torch.testing.assert_close(torch.cat([rough, last[:, None]], 1).float(), out, atol=0.03, rtol=0.03)
        torch.testing.assert_close([one.float() for one in after], list(state), atol=0.03, rtol=0.03)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"`cell` and `reset` must be one of \('lstm', 'after'\), .*, got \('lstn', 'after'\)"):
        Recurrent(4, RecurrentOptions("lstn"))
    both = Recurrent(4, RecurrentOptions(hidden_size=6, bidirectional=True))
    with pytest.raises(ParameterError, match="both directions"):
        both.step(torch.zeros(3, 4), (torch.zeros(3, 6),) * 4)
