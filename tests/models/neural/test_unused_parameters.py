"""A parameter of a network without effect, given the others, is refused with a fix, not ignored."""

from __future__ import annotations

from typing import Any

import pytest

from deepforecast import LSTM, MLP, NBEATS
from deepforecast.errors import ParameterError
from tests.models.neural.test_predict import panel

IDLE: dict[str, tuple[Any, str]] = {
    "loss": (MLP(horizon=2, loss="mse"), "head='point'"),
    "loss of a distribution": (MLP(horizon=2, head="normal", loss="owa"), "head='point'"),
    "quantiles": (MLP(horizon=2, head="student_t", quantiles=[0.1]), "head='quantiles'"),
    "max_steps": (MLP(horizon=2, max_steps=7, max_epochs=2), "with max_epochs"),
    "validate_every": (MLP(horizon=2, validate_every=5), "Set `validation_size`"),
    "checkpoint_every": (MLP(horizon=2, checkpoint_every=5), "Set `checkpoint_dir`"),
    "scaler_scope": (MLP(horizon=2, scaler="none", scaler_scope="series"), "Set another `scaler`"),
    "teacher_forcing": (LSTM(horizon=2, teacher_forcing="linear"), "output='autoregressive'"),
    "decoder_layers": (LSTM(horizon=2, output="autoregressive", decoder_layers=2), "output='direct'"),
    "decoder_size": (LSTM(horizon=2, output="autoregressive", decoder_size=8), "output='direct'"),
    "residual": (LSTM(horizon=2, residual=True), "Set another `n_layers`"),
    "degree": (NBEATS(horizon=2, degree=3), "stacks="),
}


@pytest.mark.parametrize("name", IDLE)
def test_an_idle_parameter_is_refused(name: str) -> None:
    model, way_out = IDLE[name]
    with pytest.raises(ParameterError, match=f"{model.name}: {name.partition(' ')[0]}=.* has no effect .*{way_out}"):
        model.fit(panel(2, 60))


@pytest.mark.parametrize("scaler", ["last", "level", "revin", "difference"])
def test_scalers_of_a_window_scale_no_series(scaler: str) -> None:
    with pytest.raises(
        ParameterError, match=f"scaler='{scaler}' requires scaler_scope='window', got scaler_scope='panel'.*scaler='standard'"
    ):
        MLP(horizon=2, scaler=scaler, scaler_scope="panel").fit(panel(2, 60))


@pytest.mark.parametrize(
    "model",
    [
        MLP(horizon=2, head="point", loss="mse"), MLP(horizon=2, quantiles=[0.1]), MLP(horizon=2, max_epochs=1),
        MLP(horizon=2, validation_size=5, validate_every=1),
        MLP(horizon=2, season_length=7), MLP(horizon=2, head="point", loss="mase", input_size=6, season_length=7),
        LSTM(horizon=2, input_size=6, season_length=7), LSTM(horizon=2, output="autoregressive", teacher_forcing="linear"),
        LSTM(horizon=2, n_layers=2, residual=True), NBEATS(horizon=2, stacks=["trend"], degree=3),
        MLP(horizon=2, input_size=6, season_length=1),
        MLP(horizon=2, scaler="mean_abs", scaler_scope="series"), NBEATS(horizon=2, max_steps=3, loss="mae"),
    ],
    ids=repr,
)  # fmt: skip
def test_one_that_has_an_effect_is_taken(model: Any) -> None:
    small = {"max_steps": 1} if model.max_epochs is None else {}
    if isinstance(model, (MLP, NBEATS)):
        small["hidden_sizes"] = [4]
    assert len(model.clone(**small).fit(panel(2, 40)).predict()) == 4


def test_a_list_of_no_quantiles_is_refused() -> None:
    with pytest.raises(ParameterError, match="must be a non-empty list"):
        MLP(horizon=2, quantiles=[]).fit(panel(2, 60))
