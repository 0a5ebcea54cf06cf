"""DeepAR: recurrent layers that read the window and the horizon with the same weights.

Salinas, Flunkert, Gasthaus, Januschowski (2020), "DeepAR: Probabilistic forecasting with
autoregressive recurrent networks", doi:10.1016/j.ijforecast.2019.07.001, arXiv:1704.04110.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, InputSizes
from deepforecast.nn.layers import Dropout
from deepforecast.nn.network import AutoregressiveBody, State
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions

if TYPE_CHECKING:
    from jaxtyping import Float


class DeepARBody(AutoregressiveBody):
    """Recurrent layers over window and horizon, whose output at a step gives its distribution:

        h_t = LSTM(h_{t-1}, [z_{t-1}, z_{t-l} for the lags l, x_t]),  raw_t = W h_t + b

    x_t are the future covariates of step t, static ones, and past covariates of step t - 1; those are
    0, their mean, from the second step of the horizon on, and a last input says whether they are known.
    Lagged values that are missing or before the window are 0, and each has an input that says whether
    it is observed. In training the loss includes the steps of the window that the layers read: those
    from the largest lag on, at least the second half.

    The state has the last values of the path and their masks, the past covariates of the step before,
    and the state of the layers.

    Parameters
    ----------
    sizes : InputSizes
    options : RecurrentOptions
    lags : sequence of int, default ()
        Lags of the values that are inputs in addition to the previous value.
    """

    over_time: ClassVar[bool] = True

    known_columns: Tensor
    past_columns: Tensor
    lag_rows: Tensor

    def __init__(
        self, sizes: InputSizes, options: RecurrentOptions, lags: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.lags = tuple(sorted({1, *lags}))
        self.begin = min(self.lags[-1], sizes.input_size // 2)  # index of the first step that is read
        known = sizes.future_positions
        past_only = [column for column in range(sizes.past) if column not in known]
        indices = {
            "known_columns": known,
            "past_columns": past_only,
            # In the last `lags[-1]` values of a path.
            "lag_rows": [self.lags[-1] - lag for lag in self.lags],
        }
        for name, values in indices.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.int64), persistent=False)
        self.past_width = len(past_only) + 1 if past_only else 0
        width = 2 * len(self.lags) + sizes.future_features + self.past_width
        self.layers = Recurrent(width, options)
        self.drop = Dropout(options.dropout)
        self.out = nn.Linear(self.layers.output_size, sizes.out_features)

    def initial_state(self, inputs: Inputs) -> State:
        """Return the state after the window: the input of the next step is its last value."""
        values = self._values(inputs, inputs.y[:, :0])
        _, state = self.layers(self._step_inputs(inputs, values, n_steps=0))
        recent = values[:, inputs.y.shape[1] :]  # the last lags[-1] - 1 before that value
        return recent, self._past_only(inputs)[:, -1], *state

    def step(
        self,
        state: State,
        previous: Float[Tensor, "paths"],
        future: Float[Tensor, "paths future_features"],
        step_index: int,
    ) -> tuple[Float[Tensor, "paths out_features"], State]:
        """Return the raw output of the next step and the next state."""
        recent, past, *layer_state = state
        newest = torch.stack([previous, torch.ones_like(previous)], dim=-1)
        recent = torch.cat([recent, newest.unsqueeze(1)], dim=1)  # (paths, lags[-1], 2)
        lagged = recent.index_select(1, self.lag_rows).flatten(1)
        hidden, new_state = self.layers.step(
            torch.cat([lagged, future, past], dim=-1), tuple(layer_state)
        )
        return self.out(self.drop(hidden)), (recent[:, 1:], torch.zeros_like(past), *new_state)

    def forward_teacher_forced(
        self, inputs: Inputs, previous: Float[Tensor, "batch steps"]
    ) -> Float[Tensor, "batch steps out_features"]:
        """Compute all steps of the horizon given the values before them, in one call of the layers."""
        n_window = inputs.y.shape[1] - self.begin
        return self.forward_all_positions(inputs, previous)[:, n_window:]

    def forward_all_positions(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> Float[Tensor, "batch steps out_features"]:
        """Compute the steps of the window that are read, and those of the horizon."""
        values = self._values(inputs, previous)
        hidden, _ = self.layers(self._step_inputs(inputs, values, previous.shape[1]))
        return cast(Tensor, self.out(self.drop(hidden)))

    def _values(
        self, inputs: Inputs, previous: Float[Tensor, "batch steps"]
    ) -> Float[Tensor, "batch _ 2"]:
        """Return the values before all steps with their masks, after `lags[-1]` zeros.

        `previous` begins with the last observed value of the window, in place of its last one.
        """
        values = torch.cat([inputs.y[:, :-1], previous], dim=1)
        masks = torch.cat([inputs.observed[:, :-1], torch.ones_like(previous)], dim=1)
        return F.pad(torch.stack([values, masks], dim=-1), (0, 0, self.lags[-1], 0))

    def _step_inputs(
        self, inputs: Inputs, values: Float[Tensor, "batch _ 2"], n_steps: int
    ) -> Float[Tensor, "batch _ width"]:
        """Return the inputs of the layers from step `begin` of the window to step `n_steps` of the
        horizon.
        """
        length = inputs.y.shape[1] - self.begin + n_steps
        first = self.begin + self.lags[-1]  # row of `values` of lag 0 at the first step
        lagged = [values[:, first - lag : first - lag + length] for lag in self.lags]
        known = inputs.past.index_select(2, self.known_columns)[:, self.begin :]
        covariates = torch.cat([known, inputs.future[:, :n_steps]], dim=1)
        static = inputs.static.unsqueeze(1).expand(-1, length, -1)
        past = F.pad(self._past_only(inputs), (0, 0, 0, max(n_steps - 1, 0)))
        past = past[:, self.begin : self.begin + length]
        return torch.cat([*lagged, covariates, static, past], dim=-1)

    def _past_only(self, inputs: Inputs) -> Float[Tensor, "batch _ past_width"]:
        """Return the past covariates of the step before and a mask, for all steps of the window and the
        first one of the horizon; without past covariates the width is 0.
        """
        past = inputs.past.index_select(2, self.past_columns)
        mask = torch.ones_like(past[..., :1])  # width 0 if there are no past covariates
        return F.pad(torch.cat([past, mask], dim=-1), (0, 0, 1, 0))


def seasonal_lags(season: int) -> tuple[int, ...]:
    """Return the lags around a season: the steps before, at and after it; none without a season.

    Examples
    --------
    >>> seasonal_lags(12), seasonal_lags(1)
    ((11, 12, 13), ())
    """
    return (season - 1, season, season + 1) if season > 1 else ()
