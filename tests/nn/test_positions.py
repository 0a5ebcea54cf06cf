"""Places told beside plain loops; what turns and prices tell is the difference of two rows, wherever they stand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from deepforecast.errors import ParameterError
from deepforecast.nn.multihead import AttentionMask, apply_rotary, attention
from deepforecast.nn.positions import PositionalEncoding, TokenPositions, alibi_slopes, calendar_encoding, sinusoidal_encoding
from tests.nn.bodies import seeded

WIDTH, HEADS, MISSING_ROWS = 8, 2, TokenPositions(past=(-4, -2, 0), future=(1, 2, 3, 4))


def told(kind: str | None, places: TokenPositions = MISSING_ROWS, **rest: object) -> PositionalEncoding:
    return seeded(lambda: PositionalEncoding(kind, places, WIDTH, HEADS, **rest)).double()


def some(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_waves_are_those_of_the_paper() -> None:
    for width in (8, 5):
        found = sinusoidal_encoding(torch.tensor([-3.0, 0.0, 2.0, 170.0], dtype=torch.float64), width)
        for row, place in enumerate((-3, 0, 2, 170)):
            for number in range(width):
                angle = place / 10_000 ** (2 * (number // 2) / width)
                assert found[row, number].item() == pytest.approx(math.sin(angle) if number % 2 == 0 else math.cos(angle))


def test_waves_are_added_by_the_rows_number_on_one_axis() -> None:
    positions, tokens = told("sinusoidal"), some(2, 3, WIDTH)
    rows = torch.tensor([-4.0, -2.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(
        positions.add_to(tokens, tokens, is_future=False) - tokens, sinusoidal_encoding(rows, WIDTH).expand(2, -1, -1)
    )
    steps = torch.tensor([3.0, 4.0], dtype=torch.float64)
    torch.testing.assert_close(
        positions.add_to(tokens[:, :2], tokens[:, :2], True, 2)[0] - tokens[0, :2], sinusoidal_encoding(steps, WIDTH)
    )


def test_learned_places_are_learned() -> None:
    positions, tokens = told("learned"), some(2, 3, WIDTH)
    assert {name: tuple(one.shape) for name, one in positions.named_parameters()} == {"past": (3, WIDTH), "future": (4, WIDTH)}
    torch.testing.assert_close(positions.add_to(tokens, tokens, True, 1) - tokens, positions.future[1:].expand(2, -1, -1))


@pytest.mark.parametrize("kind", ["rotary", "alibi"])
def test_a_shift_of_all_rows_changes_nothing(kind: str) -> None:
    query, keys, values = (some(2, HEADS, rows, 4, seed=seed) for rows, seed in ((4, 0), (3, 1), (3, 2)))
    hidden, found = torch.zeros(1, 1, 1, 1, dtype=torch.float64), []
    for shift in (0, 1000):
        positions = told(
            kind,
            TokenPositions(tuple(one + shift for one in MISSING_ROWS.past), tuple(one + shift for one in MISSING_ROWS.future)),
        )
        look = positions.cross_mask(hidden, 4)
        turns = positions.rotation(is_future=False)
        one = attention(apply_rotary(query, look.query_rotation), apply_rotary(keys, turns), values, AttentionMask(look.bias))
        found.append(one)
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)
    assert (found[0] - attention(query, keys, values)).abs().max() > 0.01


def test_distance_costs_each_head_its_price() -> None:
    positions = told("alibi")
    hidden = torch.zeros(1, 1, 1, 3, dtype=torch.float64)
    price = alibi_slopes(HEADS)
    assert price.tolist() == [2**-4, 2**-8]
    for head in range(HEADS):
        for step, key in ((0, 0), (3, 1)):
            away = MISSING_ROWS.future[step] - MISSING_ROWS.past[key]
            assert positions.cross_mask(hidden, 4).bias[0, head, step, key].item() == -away * price[head]
        own = positions.future_mask(True, 4).bias[0, head]
        assert own[2].tolist() == [-2 * price[head], -price[head], 0.0, -math.inf]
        assert positions.future_mask(False, 4).bias[0, head, 2].tolist()[3] == -price[head]
        assert positions.past_mask(hidden).bias[0, head, 0].tolist() == [0.0, -2 * price[head], -4 * price[head]]


@pytest.mark.parametrize("kind", ["rotary", "alibi", "sinusoidal", None])
def test_a_step_is_told_what_it_is_told_among_the_others(kind: str | None) -> None:
    positions, hidden = told(kind), torch.zeros(1, 1, 1, 3, dtype=torch.float64)
    own, across = positions.future_mask(True, 4), positions.cross_mask(hidden, 4)
    for number in range(4):
        alone, looking = positions.step_masks(number, hidden)
        if kind == "alibi":
            assert torch.equal(alone.bias, own.bias[:, :, number : number + 1, : number + 1])
            assert torch.equal(looking.bias, across.bias[:, :, number : number + 1])
        if kind == "rotary":
            for one, other in (
                (alone.query_rotation, own.query_rotation),
                (alone.key_rotation, own.key_rotation),
                (looking.query_rotation, across.query_rotation),
            ):
                assert all(torch.equal(part, whole[number : number + 1]) for part, whole in zip(one, other, strict=True))


def test_the_calendar_is_wound_around_its_circles() -> None:
    phases = torch.tensor([0.3, 1.9, 4.0], dtype=torch.float64)
    week, day = phases, 7 * phases + 0.5
    columns = torch.stack([torch.ones_like(week), week.sin(), week.cos(), day.sin(), day.cos()], dim=-1)[None]
    found = calendar_encoding(columns, [1, 3], 10)
    for row in range(3):
        expected = [f(k * one[row].item()) for k in (1, 2, 3) for f in (math.sin, math.cos) for one in (week, day)][:10]
        assert found[0, row].tolist() == pytest.approx(expected)
    positions = told("calendar", cyclic_columns=[(1, 0), (3, 2)])
    tokens = some(1, 3, WIDTH)
    torch.testing.assert_close(
        positions.add_to(tokens, columns, is_future=False) - tokens, calendar_encoding(columns, [1, 3], WIDTH)
    )
    torch.testing.assert_close(
        positions.add_to(tokens, columns[..., 1:], is_future=True) - tokens, calendar_encoding(columns, [1, 3], WIDTH)
    )


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"`positional_encoding` must be one of 'sinusoidal', .*, got round"):
        told("round")
    with pytest.raises(ParameterError, match=r"calendar=\['hour', 'day_of_week'\]"):
        told("calendar")
    with pytest.raises(ParameterError, match=r"d_model=6 and n_heads=2\. Use d_model=4"):
        PositionalEncoding("rotary", MISSING_ROWS, 6, 2)
