"""What a search found: the best configuration, every trial, what mattered, and how much of it holds on windows not searched."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from deepforecast.core.forecaster import Forecaster
from deepforecast.errors import ParameterError, SaveError, format_list, format_value
from deepforecast.tuning import survival
from deepforecast.tuning.journal import journal
from deepforecast.tuning.running import steps_of
from deepforecast.tuning.space import MODEL, Configuration, Space, read
from deepforecast.tuning.storage import SQLITE, quiet

if TYPE_CHECKING:
    import pandas as pd

BEFORE, AFTER = ("number", "state", "model"), ("seconds", "steps", "start", "attempt", "copy_of", "reason")  # of the frame
PLOTS = ("history", "importance", "slices", "parallel", "pareto")
DIED = "its process died"
LEAST_TRIALS = 10  # of which an importance can be estimated: with fewer even a decisive parameter is rarely ranked first


@dataclass(frozen=True, eq=False)
class TuningResult:
    """What `tune` found. `study`: Optuna's; `holdout`: a row for the model's own and the best configuration, scored where the
    search did not look (None if nothing was held out); `settings`: what was asked for; `others`: of models searched apart."""

    study: optuna.Study
    space: Space
    objectives: tuple[str, ...]
    holdout: pd.DataFrame | None
    settings: Mapping[str, Any]
    others: tuple[TuningResult, ...] = ()
    _held: tuple[FrozenTrial, ...] | None = None

    @property
    def best_model(self) -> Forecaster:
        """The best model, not fitted; of several objectives by the first."""
        return self.space.built(self._tried(self.best_trial))

    @property
    def best_params(self) -> dict[str, Any]:
        """The values of the parameters that were searched; `model` among them where there are several."""
        return self._params(self.best_trial)

    @property
    def best_value(self) -> float:
        """Its score: less is better (of a metric that is best elsewhere, how far from there)."""
        return float(self.best_trial.values[0])

    @property
    def best_trial(self) -> FrozenTrial:
        """The trial itself; of equals the earliest."""
        done = [one for one in self._counting() if one.state == TrialState.COMPLETE]
        return min(done, key=lambda one: (one.values[0], one.number))

    @property
    def trials(self) -> pd.DataFrame:
        """A row a trial: number, state, model, a column for each objective, each parameter (a choice that is no number by its
        text, as `None`), `seconds`, `steps` (how far it came, in hundredths of a window), `initial_params` (what it began from, if it
        was not drawn), `attempt`, `copy_of` and `reason`."""
        import pandas as pd

        names = self._parameters()
        rows = [self._row(one, names) for one in self._counting()]
        metrics = [name for name in self.objectives if name != "seconds"]  # which every trial has anyway
        columns = [*BEFORE, *metrics, *names.values(), *AFTER]
        found: pd.DataFrame = pd.DataFrame(rows, columns=columns).astype({"number": np.int64})
        for other in self.others:
            found = pd.concat([found, other.trials], ignore_index=True)
        return found

    def best_configurations(self, count: int) -> list[dict[str, Any]]:
        """The parameters of the best trials, the best first."""
        done = sorted(
            (one for one in self._counting() if one.state == TrialState.COMPLETE and "copy_of" not in one.user_attrs["told"]),
            key=lambda one: (one.values[0], one.number),
        )
        return [self._params(one) for one in done[:count]]

    @property
    def pareto(self) -> pd.DataFrame:
        """The trials that no other beats in all objectives, without copies of them."""
        table = self.trials[self.trials["copy_of"].isna()]
        values = table[list(self.objectives)].to_numpy(dtype=np.float64)
        good = (table["state"] == "complete").to_numpy()
        beaten = [
            any(good[j] and (values[j] <= values[i]).all() and (values[j] < values[i]).any() for j in range(len(values)))
            for i in range(len(values))
        ]
        front: pd.DataFrame = table[good & ~np.array(beaten, dtype=bool)]
        return front.sort_values(list(self.objectives), ignore_index=True)

    def importance(self, by: str = "fanova", objective: str | None = None) -> pd.DataFrame:
        """Rank the parameters by how much of the score's variation each explains.

        Only complete trials count: the scores of pruned and failed ones are not of all windows. A parameter that not all of
        these have (of one of several models, or one that depends on another) cannot be compared with the others: it is at the
        end, with importance NaN. To rank the parameters of each of several models, search them with `TuningOptions(separate_studies=True)`: the
        result and its `others` have an importance each. Below 20 trials the order can be wrong.

        Parameters
        ----------
        by : {"fanova", "mean_decrease_impurity"}
            Functional ANOVA of a random forest (shares of the variance over the ranges searched; interactions with other
            parameters do not count), or the forest's mean decrease in impurity (faster, over the trials as they were drawn).
        objective : str, optional
            One of the `objectives`; the first if not given.

        Returns
        -------
        DataFrame
            Columns `parameter` and `importance` (shares that sum to 1), the most important first.

        Raises
        ------
        ParameterError
            With fewer than 10 complete trials, or if all have the same score.

        References
        ----------
        Hutter, Hoos, Leyton-Brown (2014), An Efficient Approach for Assessing Hyperparameter Importance. ICML.
        """
        import pandas as pd
        from optuna import importance

        evaluators = {
            "fanova": importance.FanovaImportanceEvaluator,
            "mean_decrease_impurity": importance.MeanDecreaseImpurityImportanceEvaluator,
        }
        if by not in evaluators:
            raise ParameterError(f"`by` must be one of {format_list(evaluators)}, got {format_value(by)!r}.")
        index = self._objective(objective)
        trials = [one for one in self._counting() if one.state == TrialState.COMPLETE and one.params]
        drawn = [one for one in trials if survival.GIVEN not in one.user_attrs] or trials  # a start need not lie in its range
        shared = set.intersection(*(set(one.params) for one in drawn)) if drawn else set()
        partial = {name: math.nan for one in drawn for name in one.params if name not in shared}
        trials = [one for one in trials if shared <= set(one.params)]
        n_scores = len({one.values[index] for one in trials})
        if len(trials) < LEAST_TRIALS or n_scores < 2 or not shared:
            raise ParameterError(
                f"Importance needs at least {LEAST_TRIALS} complete trials that have a parameter in common and whose scores "
                f"differ, got {len(trials)} with {n_scores} different scores (pruned and failed trials do not count). Set a "
                "larger `n_trials`."
            )
        with quiet():
            study = optuna.create_study(directions=["minimize"])
            for one in trials:
                params = {name: one.params[name] for name in sorted(shared)}
                kinds = {name: one.distributions[name] for name in params}
                study.add_trial(optuna.create_trial(params=params, distributions=kinds, value=one.values[index]))
            shares = importance.get_param_importances(study, evaluator=evaluators[by](seed=0)) | partial
        return pd.DataFrame({"parameter": list(shares), "importance": list(shares.values())})

    def plot(self, kind: str = "history", *, objective: str | None = None) -> Any:
        """A figure of plotly (an extra): "history", "importance", "slices", "parallel" (coordinates), "pareto" of several
        objectives."""
        from deepforecast.plotting import tuning as pictures

        if kind not in PLOTS:
            raise ParameterError(f"kind is one of {', '.join(map(repr, PLOTS))}; got {format_value(kind)!r}.")
        name = self.objectives[self._objective(objective)]
        if kind == "importance":
            return pictures.plot_importance(self.importance(objective=objective))
        if kind == "pareto":
            if len(self.objectives) < 2:
                raise ParameterError("kind='pareto' is of several objectives: tune(metric=['mase', 'seconds']).")
            return pictures.plot_front(self.trials, list(self.objectives[:2]))
        names = list(self._parameters().values())
        draw = {"history": pictures.plot_history, "slices": pictures.plot_slices, "parallel": pictures.plot_parallel}[kind]
        return draw(self.trials, name, names)

    def save(self, path: Any) -> None:
        """Write the study to a journal file, which `tune(storage=path, study_name=...)` goes on from and optuna-dashboard
        shows. A file that is there is not written over."""
        target = os.fspath(path)
        if os.path.exists(target):
            raise SaveError(f"A study is saved to a new file; {format_value(target)} is there. Say another path, or remove it.")
        if target.lower().endswith(SQLITE):
            raise SaveError(f"A study is saved as a journal; {format_value(target)} is a name of SQLite files. Say study.log.")
        if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
            raise SaveError(f"A study is saved to a folder that exists; that of {format_value(target)} does not. Make it first.")
        with quiet():
            optuna.copy_study(
                from_study_name=self.study.study_name, from_storage=self.study._storage, to_storage=journal(target)
            )

    def __repr__(self) -> str:
        counts = self.trials["state"].value_counts()
        told = ", ".join(f"{count} {state}" for state, count in counts.items())
        best = f"{self.objectives[0]} {self.best_value:.6g} in trial {self.best_trial.number}"
        name = format_value(self.study.study_name)
        return f"TuningResult({name}: {len(self.trials)} trials ({told}); best {best}: {self.best_model!r})\n{self._gain()}"

    def _gain(self) -> str:
        """How much better the best configuration is than the default one on data that the search did not see."""
        default_is_best = self.best_model == self.space.models[self._tried(self.best_trial).model]
        if default_is_best and (self.holdout is None or not self.holdout["error"].any()):
            text = "The best configuration is the default one."
            if self.holdout is None:
                return text
            return f"{text} On held-out data its {self.objectives[0]} is {self.holdout['held_out'].iloc[1]:.4g}."
        if self.holdout is None:
            return "Its gain on data that were not searched is not known. Set options=TuningOptions(holdout=1) to measure it."
        default, best = (self.holdout.iloc[row] for row in (0, 1))
        failed = default["error"] or best["error"]
        if failed:
            return f"Its gain on held-out data could not be measured: {format_value(failed, 300)}"
        held_out, searched = (_lower(best[name]) for name in ("gain_held_out", "gain"))
        return (
            f"On held-out data its {self.objectives[0]} is {best['held_out']:.4g}, {held_out} the {default['held_out']:.4g} of "
            f"the default configuration; in the search it was {searched} the default's."
        )

    def _counting(self) -> list[FrozenTrial]:
        every = self.study.get_trials(deepcopy=False) if self._held is None else self._held
        return survival.counting(every, int(self.settings["retries"]))

    def as_it_is(self) -> TuningResult:
        """With the trials there are by now, whatever the study does from here on."""
        return replace(self, _held=tuple(self.study.get_trials()))

    def _params(self, trial: FrozenTrial) -> dict[str, Any]:
        tried = self._tried(trial)
        several = {MODEL: self.space.names[tried.model]} if len(self.space.models) > 1 else {}
        return several | self.space.searched(tried)

    def _tried(self, trial: FrozenTrial) -> Configuration:
        given = trial.user_attrs.get(survival.GIVEN)
        if given is not None:
            return Configuration(int(given["model"]), read(given["params"]))
        return self.space.draw(_Replayed(trial))

    def _parameters(self) -> dict[str, str]:
        """The names of all parameters that any trial has, and of their columns: others than those that every frame has."""
        every = dict.fromkeys(name for one in self._counting() for name in self._values(one))
        taken = {*BEFORE, *AFTER, *self.objectives}
        return {name: f"{self.space.names[0]}.{name}" if name in taken else name for name in every}

    def _values(self, trial: FrozenTrial) -> dict[str, Any]:
        """What a trial tried, as it is shown."""
        given = trial.user_attrs.get(survival.GIVEN)
        found = trial.params if given is None else trial.params | self.space.shown(self._tried(trial))
        several = len(self.space.models) > 1
        return {name: str(value) if value is None else value for name, value in found.items() if name != MODEL or not several}

    def _row(self, trial: FrozenTrial, names: Mapping[str, str]) -> dict[str, Any]:
        note = trial.user_attrs.get(survival.TOLD, {})
        states = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running"}
        number = int(note.get("model", trial.user_attrs.get(survival.GIVEN, {}).get("model", 0)))
        values = dict(zip(self.objectives, trial.values, strict=True)) if trial.state == TrialState.COMPLETE else {}
        died = DIED if trial.state == TrialState.FAIL and not note else ""
        tried, length = self._values(trial), int(self.settings["length"])
        return {
            "number": trial.number, "state": states[trial.state.name], "model": self.space.names[number],
            **{column: tried.get(name) for name, column in names.items()},
            **{"seconds": note.get("seconds", np.nan)} | values,
            "steps": steps_of(trial, length, bool(self.settings["by_window"])),
            "start": trial.user_attrs.get("start", ""), "attempt": int(trial.user_attrs.get(survival.ATTEMPT, 1)),
            "copy_of": note.get("copy_of"), "reason": note.get("reason", died),
        }  # fmt: skip

    def _objective(self, name: str | None) -> int:
        if name is None:
            return 0
        if name not in self.objectives:
            raise ParameterError(f"objective is one of {format_list(self.objectives)}; got {format_value(name)!r}.")
        return self.objectives.index(name)


def _lower(gain: float) -> str:
    """How a score compares with another one, by its gain."""
    if not math.isfinite(gain):
        return "not comparable with"
    return f"{abs(gain):.1%} {'lower' if gain > 0 else 'higher'} than" if gain else "the same as"


@dataclass(frozen=True)
class _Replayed:
    """The face of a trial that draws what was drawn."""

    trial: FrozenTrial

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """As it was."""
        return self.trial.params[name]

    def suggest_int(self, name: str, low: int, high: int, **_: Any) -> int:
        """As it was."""
        return int(self.trial.params[name])

    def suggest_float(self, name: str, low: float, high: float, **_: Any) -> float:
        """As it was."""
        return float(self.trial.params[name])
