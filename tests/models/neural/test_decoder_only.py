"""DecoderOnly through the public API: presets, cached forecasts, sample paths, attention weights, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from deepforecast import DecoderOnly
from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Inputs, InputSizes
from tests.models.neural.test_predict import panel

LENGTH, HORIZON = 24, 6
SMALL: dict[str, Any] = {
    "input_size": LENGTH, "d_model": 16, "n_heads": 2, "n_layers": 2, "max_steps": 5, "calendar": None, "patch_length": 4
}  # fmt: skip


def make_model(**options: Any) -> DecoderOnly:
    return DecoderOnly(horizon=HORIZON, **{**SMALL, **options})


@pytest.mark.parametrize(("preset", "count"), [("tiny", 100_096), ("small", 793_344), ("base", 6_318_592)])
def test_presets_have_the_documented_number_of_parameters(preset: str, count: int) -> None:
    """n_layers * (12 d^2 + 13 d) + 2 d: 2 layers with d = 64, 4 with d = 128, 8 with d = 256."""
    with torch.device("meta"):
        body = DecoderOnly(preset=preset)._body(InputSizes(input_size=LENGTH, horizon=HORIZON, out_features=1))
    assert sum(weight.numel() for weight in body.layers.parameters()) == count
    assert f'{count:,} in "{preset}"' in " ".join((DecoderOnly.__doc__ or "").split())
    # Patches of 6 steps: 6 values and 6 masks in, 6 values out.
    d = body.out.in_features
    assert sum(weight.numel() for weight in body.parameters()) == count + (12 * d + d) + (6 * d + 6)


def test_parameters_replace_those_of_the_preset() -> None:
    options = DecoderOnly(preset="small", n_layers=1, d_model=24)._options(LENGTH)
    assert (options.layer.d_model, options.layer.n_heads, options.n_layers) == (24, 8, 1)
    assert options.layer.dim_feedforward == 96


def test_patches_are_whole_seasons_where_they_can() -> None:
    """Default: a quarter of the window, at most 16; 14 are two weeks, and 16 hours less than a day."""
    lengths = [DecoderOnly()._options(168, season).patch_length for season in (1, 7, 12, 24)]
    assert lengths == [16, 14, 12, 16]
    assert DecoderOnly(patch_length=5)._options(168, 7).patch_length == 5


@pytest.mark.parametrize("encoding", ["sinusoidal", "learned", "rotary", "alibi", None])
def test_forecasts_equal_those_without_a_cache(encoding: str | None) -> None:
    frame = panel(3, 100)
    model = make_model(head="point", positional_encoding=encoding, patch_length=2, max_steps=10, learning_rate=1e-2).fit(frame)
    forecasts = model.predict()["DecoderOnly"].to_numpy().reshape(3, -1)
    body, y = model.network_.body, frame["y"].to_numpy().reshape(3, -1)[:, -LENGTH:]
    loc, scale = y.mean(axis=1, keepdims=True), y.std(axis=1, keepdims=True)
    z = torch.from_numpy((y - loc) / scale).float()
    inputs = Inputs(z, torch.ones_like(z), *(z.new_zeros(3, *shape) for shape in ((LENGTH, 0), (HORIZON, 0), (0,))))
    previous, values = z[:, -1:], []
    with torch.inference_mode():
        for _ in range(HORIZON):
            values.append(body.forward_teacher_forced(inputs, previous)[:, -1, 0])
            previous = torch.cat([previous, values[-1][:, None]], dim=1)
    expected = loc + scale * torch.stack(values, 1).double().numpy()
    np.testing.assert_allclose(forecasts, expected, rtol=0, atol=1e-5 * scale.max())
    assert abs(np.diff(forecasts)).min() > 0


def test_windows_are_learned_from_in_training() -> None:
    """The loss covers the window: a network with a horizon of one step learns a season of its window from few windows."""
    season = np.tile([0.0, 1.0, 4.0, 2.0, -3.0, 1.0], 6)
    frame = pd.DataFrame({"ds": np.arange(36), "y": season})
    model = DecoderOnly(
        horizon=1, head="point", max_steps=100, learning_rate=1e-2, input_size=35, patch_length=1, season_length=1, d_model=16,
        n_heads=2, n_layers=1, positional_encoding="rotary",
    ).fit(frame)  # a single window of 35 + 1 steps
    assert np.abs(model.predict(6)["DecoderOnly"] - season[:6]).mean() < 0.6


def test_steps_of_a_patch_are_correlated_in_sample_paths() -> None:
    """Of a random walk; steps of independent draws would change more."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"ds": np.arange(1500), "y": np.cumsum(random.normal(size=1500))})
    model = make_model(
        head="normal", max_steps=80, learning_rate=1e-2, patch_length=3, n_layers=1, batch_size=32, scaler="last",
        season_length=1, intervals="uncalibrated",
    ).fit(frame)  # fmt: skip
    factor = model.state_.learned.shared["correlation_factor"]
    correlation = factor @ factor.T
    block = np.arange(HORIZON) // 3
    same_patch = block[:, None] == block
    assert (correlation[~same_patch] == 0).all()
    assert correlation[0, 1] > 0.5  # 0.71 of a random walk: sqrt(1 / 2)
    assert correlation[1, 2] > 0.6  # 0.82: sqrt(2 / 3)
    paths = model.simulate(300, seed=1).pivot(index="sample", columns="ds", values="DecoderOnly").to_numpy()
    changes = np.diff(paths, axis=1)[:, [0, 1]].std(axis=0)  # within the first patch
    independent = np.hypot(paths[:, :2].std(axis=0), paths[:, 1:3].std(axis=0))
    assert (changes < 0.7 * independent).all()  # 1 / sqrt(3) = 0.58 and 1 / sqrt(5) = 0.45 of a random walk


def test_explain_shows_attention_that_is_causal() -> None:
    model = make_model().fit(panel(2, 100))
    weights = model.explain(HORIZON + 3)
    keys = ["unique_id", "cutoff", "kind", "layer", "head", "step"]
    np.testing.assert_allclose(weights.groupby(keys)["weight"].sum(), 1.0, atol=1e-5)
    assert set(weights["kind"]) == {"self"}
    assert set(weights["step"][weights["step"] > 0]) == set(range(1, HORIZON + 1))
    assert (weights["weight"][weights["lag"] > weights["ds"]] == 0).all()
    ahead = weights[weights["step"] > 0]
    assert (ahead["lag"] < ahead["ds"]).eq(ahead["weight"] > 0).all()


def test_past_covariates_are_not_needed_after_the_cutoff() -> None:
    frame = panel(2, 100).assign(heat=lambda rows: np.sin(np.arange(len(rows))), price=lambda rows: np.cos(np.arange(len(rows))))
    model = make_model(head="point", max_steps=20).fit(frame, columns={"past": ["heat"], "future": ["price"]})
    future = model.future_frame().assign(price=0.3)
    before = model.predict(future=future)["DecoderOnly"].to_numpy()
    other = model.predict(future=future.assign(price=0.4))["DecoderOnly"].to_numpy()
    assert (abs(other - before) > 1e-5).all()
    moved = frame.assign(heat=frame["heat"] + (frame["ds"] > frame["ds"].max() - pd.Timedelta(days=4)))
    after = model.predict(frame=moved, future=future)["DecoderOnly"].to_numpy()
    assert (abs(after - before) > 1e-5).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_heads": 3}, r"positional_encoding='rotary', got d_model=16 and n_heads=3\. Use d_model=12 or another encoding"),
        ({"n_heads": 3, "positional_encoding": "alibi"}, r"d_model=16 and n_heads=3\. Use n_heads=2 or d_model=15"),
        ({"patch_length": 25}, r"patch_length=25 and input_size=24\. Set patch_length=6"),
        ({"segment_length": 2, "positional_encoding": "sinusoidal"}, r"got positional_encoding='sinusoidal'\. Set positional_enc"),
        ({"memory_segments": 2}, r"memory_segments=2 has no effect with segment_length=None"),
    ],
)
def test_invalid_combinations_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_model(**options).fit(panel(1, 60))


@pytest.mark.parametrize("head", ["quantiles", "student_t", "mixture", "bins"])
def test_heads_and_decodings(head: str) -> None:
    frame = panel(2, 60)
    model = make_model(head=head, decoding="greedy", segment_length=2).fit(frame)
    forecast = model.predict(HORIZON + 2, level=80)
    assert (forecast["DecoderOnly-lo-80"] < forecast["DecoderOnly-hi-80"]).all()
    paths = model.simulate(20)
    assert len(paths) == 2 * HORIZON * 20
    if head == "bins":
        beams = model.beam_search(4)
        assert (beams.groupby(["unique_id", "path"])["log_probability"].nunique() == 1).all()
        model.set_params(decoding="beam")
        best = beams[beams["path"] == 0]["value"].to_numpy()
        np.testing.assert_allclose(model.predict()["DecoderOnly"], best)


@pytest.mark.filterwarnings("ignore:DecoderOnly. prediction intervals are not calibrated")
def test_pretraining_on_the_next_patch_is_enough_to_forecast() -> None:
    """Pretraining and fitting minimise the same loss, so a short one of each gives the same weights."""
    model = make_model(intervals="uncalibrated")
    pretrained = model.clone().pretrain(panel(3, 100))
    fitted = model.clone().fit(panel(3, 100))
    for weight, expected in zip(pretrained.network_.parameters(), fitted.network_.parameters(), strict=True):
        torch.testing.assert_close(weight, expected)
    unseen = panel(2, 60)
    pd.testing.assert_frame_equal(pretrained.predict(frame=unseen, level=80), fitted.predict(frame=unseen, level=80))
    pd.testing.assert_frame_equal(pretrained.simulate(5, seed=2), fitted.simulate(5, seed=2))
