"""The result of `tune`."""

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
from deepforecast.errors import ParameterError, SaveError, format_list, format_value, pluralize
from deepforecast.tuning import trial_recovery
from deepforecast.tuning.journal import open_journal
from deepforecast.tuning.space import MODEL_PARAM, Configuration, Space, parse_params
from deepforecast.tuning.storage import SQLITE_SUFFIXES, silence_optuna
from deepforecast.tuning.trial_runner import count_steps

if TYPE_CHECKING:
    import pandas as pd

# columns of `trials` before and after the objectives and parameters
LEADING_COLUMNS = ("number", "state", "model")
TRAILING_COLUMNS = ("seconds", "steps", "start", "attempt", "copy_of", "reason")
PLOT_KINDS = ("history", "importance", "slices", "parallel", "pareto")
LOST_PROCESS = "its process died"
MIN_TRIALS = 10  # with fewer even a decisive parameter is rarely ranked first by importance


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The trials of a search and its best configuration.

    Attributes
    ----------
    study : optuna.Study
        The Optuna study.
    space : Space
        Models and ranges.
    objectives : tuple of str
        Names of the objectives; the first one determines the best trial.
    holdout : pandas.DataFrame or None
        Scores of the default and the best configuration in the search and on the holdout windows,
        with the gains over the default; None without a holdout.
    settings : dict
        Settings of the search.
    others : tuple of TuningResult
        Results of the other models with `TuningOptions(separate_studies=True)`.

    See Also
    --------
    tune : Run a search.
    """

    study: optuna.Study
    space: Space
    objectives: tuple[str, ...]
    holdout: pd.DataFrame | None
    settings: Mapping[str, Any]
    others: tuple[TuningResult, ...] = ()
    _snapshot: tuple[FrozenTrial, ...] | None = None

    @property
    def best_model(self) -> Forecaster:
        """The unfitted model of the best trial (of the first of several objectives)."""
        return self.space.build_model(self._configuration_of(self.best_trial))

    @property
    def best_params(self) -> dict[str, Any]:
        """Values of the searched parameters of the best trial, with `model` if there are
        several."""
        return self._searched_params(self.best_trial)

    @property
    def best_value(self) -> float:
        """Score of the best trial, lower being better (for bias and coverage the distance from the
        best value)."""
        return float(self.best_trial.values[0])

    @property
    def best_trial(self) -> FrozenTrial:
        """The best completed trial, the earliest one of ties."""
        completed_trials = [trial for trial in self._budget_trials() if trial.state == TrialState.COMPLETE]
        return min(completed_trials, key=lambda trial: (trial.values[0], trial.number))

    @property
    def trials(self) -> pd.DataFrame:
        """Table of all trials.

        Columns: `number`, `state`, `model`, the objectives, the parameters (choices that are not
        numbers as text), `seconds`, `steps` (progress in hundredths of a window), `start` (the
        initial configuration, empty if sampled), `attempt`, `copy_of` (an earlier trial of the same
        configuration) and `reason` (of a failure or pruning).
        """
        import pandas as pd

        names = self._param_columns()
        rows = [self._trial_row(trial, names) for trial in self._budget_trials()]
        metrics = [name for name in self.objectives if name != "seconds"]  # a column of all trials anyway
        columns = [*LEADING_COLUMNS, *metrics, *names.values(), *TRAILING_COLUMNS]
        table: pd.DataFrame = pd.DataFrame(rows, columns=columns).astype({"number": np.int64})
        if not self.others:
            return table
        searches = [table, *(tuning_result.trials for tuning_result in self.others)]
        # not pd.concat: the dtypes it gives columns without a value differ between pandas 2 and 3
        columns = list(dict.fromkeys(name for search in searches for name in search))
        return pd.DataFrame([row for search in searches for row in search.to_dict("records")], columns=columns)

    def best_configurations(self, count: int) -> list[dict[str, Any]]:
        """Return the parameters of the `count` best complete trials without copies, the best first."""
        completed_trials = sorted(
            (
                trial
                for trial in self._budget_trials()
                if trial.state == TrialState.COMPLETE and "copy_of" not in trial.user_attrs[trial_recovery.OUTCOME]
            ),
            key=lambda trial: (trial.values[0], trial.number),
        )
        return [self._searched_params(trial) for trial in completed_trials[:count]]

    @property
    def pareto(self) -> pd.DataFrame:
        """The Pareto front: trials not dominated by another one in all objectives, without
        copies."""
        table = self.trials[self.trials["copy_of"].isna()]
        values = table[list(self.objectives)].to_numpy(dtype=np.float64)
        is_complete = (table["state"] == "complete").to_numpy()
        is_dominated = [
            any(is_complete[j] and (values[j] <= values[i]).all() and (values[j] < values[i]).any() for j in range(len(values)))
            for i in range(len(values))
        ]
        front: pd.DataFrame = table[is_complete & ~np.array(is_dominated, dtype=bool)]
        return front.sort_values(list(self.objectives), ignore_index=True)

    def importance(self, by: str = "fanova", objective: str | None = None) -> pd.DataFrame:
        """Rank the parameters by how much of the score's variation each explains.

        Only complete trials count, because scores of pruned and failed ones do not cover all
        windows. Parameters that not all of these trials have (of one of several models, or
        conditional ones) have importance NaN and come last. To rank the parameters of each of
        several models, use `TuningOptions(separate_studies=True)`: the result and its `others` have
        an importance each. With fewer than 20 trials the order is unreliable.

        Parameters
        ----------
        by : {"fanova", "mean_decrease_impurity"}
            Functional ANOVA of a random forest (shares of the variance over the ranges searched;
            interactions with other parameters do not count), or the forest's mean decrease in
            impurity (faster, over the trials as they were drawn).
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
        Hutter, Hoos, Leyton-Brown (2014), An Efficient Approach for Assessing Hyperparameter
        Importance. ICML.
        """
        import pandas as pd
        from optuna import importance

        evaluators = {
            "fanova": importance.FanovaImportanceEvaluator,
            "mean_decrease_impurity": importance.MeanDecreaseImpurityImportanceEvaluator,
        }
        if by not in evaluators:
            raise ParameterError(
                f"`by` must be one of {format_list(evaluators)}, got {format_value(by)!r}.", parameter="by", value=by
            )
        index = self._objective_index(objective)
        trials = [trial for trial in self._budget_trials() if trial.state == TrialState.COMPLETE and trial.params]
        # given configurations may lack parameters whose value is outside the range
        drawn_trials = [trial for trial in trials if trial_recovery.GIVEN_CONFIGURATION not in trial.user_attrs] or trials
        shared_params = set.intersection(*(set(trial.params) for trial in drawn_trials)) if drawn_trials else set()
        partial = {name: math.nan for trial in drawn_trials for name in trial.params if name not in shared_params}
        trials = [trial for trial in trials if shared_params <= set(trial.params)]
        n_scores = len({trial.values[index] for trial in trials})
        if len(trials) < MIN_TRIALS or n_scores < 2 or not shared_params:
            raise ParameterError(
                f"Importance requires at least {MIN_TRIALS} complete trials that have a parameter in common and whose scores "
                f"differ, got {pluralize(len(trials), 'trial')} with {pluralize(n_scores, 'different score')} (pruned and failed "
                "trials do not count).",
                hint="Set a larger `n_trials`.",
            )
        with silence_optuna():
            study = optuna.create_study(directions=["minimize"])
            for trial in trials:
                trial_params = {name: trial.params[name] for name in sorted(shared_params)}
                distributions = {name: trial.distributions[name] for name in trial_params}
                study.add_trial(
                    optuna.create_trial(params=trial_params, distributions=distributions, value=trial.values[index])
                )
            shares = importance.get_param_importances(study, evaluator=evaluators[by](seed=0)) | partial
        return pd.DataFrame({"parameter": list(shares), "importance": list(shares.values())})

    def plot(self, kind: str = "history", *, objective: str | None = None) -> Any:
        """Plot the search with plotly (an optional dependency).

        Parameters
        ----------
        kind : {"history", "importance", "slices", "parallel", "pareto"}, default "history"
            Type of the plot; "parallel" are parallel coordinates, "pareto" requires several
            objectives.
        objective : str, optional
            One of the `objectives`. None: the first one.

        Returns
        -------
        plotly.graph_objects.Figure
        """
        from deepforecast.plotting import tuning as pictures

        if kind not in PLOT_KINDS:
            raise ParameterError(
                f"`kind` must be one of {', '.join(map(repr, PLOT_KINDS))}, got {format_value(kind)!r}.",
                parameter="kind",
                value=kind,
            )
        name = self.objectives[self._objective_index(objective)]
        if kind == "importance":
            return pictures.plot_importance(self.importance(objective=objective))
        if kind == "pareto":
            if len(self.objectives) < 2:
                raise ParameterError(
                    "kind='pareto' requires several objectives, got a single one.", hint="Use tune(metric=['mase', 'seconds']).",
                    parameter="kind",
                )
            return pictures.plot_front(self.trials, list(self.objectives[:2]))
        names = list(self._param_columns().values())
        draw = {"history": pictures.plot_history, "slices": pictures.plot_slices, "parallel": pictures.plot_parallel}[kind]
        return draw(self.trials, name, names)

    def save(self, path: Any) -> None:
        """Save the study to a new journal file.

        `tune(storage=path, study_name=...)` resumes it, and optuna-dashboard can display it.

        Parameters
        ----------
        path : str or path-like
            File to create, in an existing folder.

        Raises
        ------
        SaveError
            If the file exists or its folder does not.
        """
        target = os.fspath(path)
        if os.path.exists(target):
            raise SaveError(
                f"The study cannot be saved to {format_value(target)}, which already exists.",
                hint="Pass another path, or remove the file.",
            )
        if target.lower().endswith(SQLITE_SUFFIXES):
            raise SaveError(
                f"The study is saved as a journal, so {format_value(target)} cannot have a suffix of SQLite files.",
                hint="Pass another path, such as study.log.",
            )
        if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
            raise SaveError(f"The folder of {format_value(target)} must exist.", hint="Create it first.")
        with silence_optuna():
            optuna.copy_study(
                from_study_name=self.study.study_name, from_storage=self.study._storage, to_storage=open_journal(target)
            )

    def __repr__(self) -> str:
        """The numbers of trials by state, the best trial and model, and the gain on holdout data."""
        counts = self.trials["state"].value_counts()
        counts_text = ", ".join(f"{n_trials} {state}" for state, n_trials in counts.items())
        best_score = f"{self.objectives[0]} {self.best_value:.6g} in trial {self.best_trial.number}"
        name = format_value(self.study.study_name)
        header = f"TuningResult({name}: {pluralize(len(self.trials), 'trial')} ({counts_text}); best {best_score}: {self.best_model!r})"
        return f"{header}\n{self._describe_gain()}"

    def _describe_gain(self) -> str:
        """A sentence on the gain of the best configuration over the default one on holdout data."""
        default_is_best = self.best_model == self.space.models[self._configuration_of(self.best_trial).model]
        if default_is_best and (self.holdout is None or not self.holdout["error"].any()):
            sentence = "The best configuration is the default one."
            if self.holdout is None:
                return sentence
            return f"{sentence} On holdout data its {self.objectives[0]} is {self.holdout['held_out'].iloc[1]:.4g}."
        if self.holdout is None:
            return "Its gain on unseen data is unknown. Set options=TuningOptions(holdout=1) to measure it."
        default_row, best_row = (self.holdout.iloc[row] for row in (0, 1))
        failed = default_row["error"] or best_row["error"]
        if failed:
            return f"Its gain on holdout data could not be measured: {format_value(failed, 300)}"
        gain_held_out, gain_searched = (_format_gain(best_row[name]) for name in ("gain_held_out", "gain"))
        return (
            f"On holdout data its {self.objectives[0]} is {best_row['held_out']:.4g}, {gain_held_out} the "
            f"{default_row['held_out']:.4g} of the default configuration; in the search it was {gain_searched} the default's."
        )

    def _budget_trials(self) -> list[FrozenTrial]:
        trials = self.study.get_trials(deepcopy=False) if self._snapshot is None else self._snapshot
        return trial_recovery.filter_budget_trials(trials, int(self.settings["retries"]))

    def freeze_trials(self) -> TuningResult:
        """Return a copy with the current trials, independent of later changes to the study."""
        return replace(self, _snapshot=tuple(self.study.get_trials()))

    def _searched_params(self, trial: FrozenTrial) -> dict[str, Any]:
        configuration = self._configuration_of(trial)
        model_param = {MODEL_PARAM: self.space.names[configuration.model]} if len(self.space.models) > 1 else {}
        return model_param | self.space.searched_params(configuration)

    def _configuration_of(self, trial: FrozenTrial) -> Configuration:
        given_configuration = trial.user_attrs.get(trial_recovery.GIVEN_CONFIGURATION)
        if given_configuration is not None:
            return Configuration(int(given_configuration["model"]), parse_params(given_configuration["params"]))
        return self.space.draw(_ReplayedTrial(trial))

    def _param_columns(self) -> dict[str, str]:
        """Column names of all parameters of any trial, prefixed where they clash with other
        columns."""
        names = dict.fromkeys(name for trial in self._budget_trials() for name in self._displayed_params(trial))
        reserved = {*LEADING_COLUMNS, *TRAILING_COLUMNS, *self.objectives}
        return {name: f"{self.space.names[0]}.{name}" if name in reserved else name for name in names}

    def _displayed_params(self, trial: FrozenTrial) -> dict[str, Any]:
        """The parameters of a trial as displayed."""
        given_configuration = trial.user_attrs.get(trial_recovery.GIVEN_CONFIGURATION)
        trial_params = (
            trial.params
            if given_configuration is None
            else trial.params | self.space.displayed_params(self._configuration_of(trial))
        )
        has_many_models = len(self.space.models) > 1
        return {
            name: str(value) if value is None else value
            for name, value in trial_params.items()
            if name != MODEL_PARAM or not has_many_models
        }

    def _trial_row(self, trial: FrozenTrial, names: Mapping[str, str]) -> dict[str, Any]:
        """A row of `trials`; `names` maps parameters to their columns."""
        note = trial.user_attrs.get(trial_recovery.OUTCOME, {})
        states = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running"}
        model_index = int(note.get("model", trial.user_attrs.get(trial_recovery.GIVEN_CONFIGURATION, {}).get("model", 0)))
        values = dict(zip(self.objectives, trial.values, strict=True)) if trial.state == TrialState.COMPLETE else {}
        lost_reason = LOST_PROCESS if trial.state == TrialState.FAIL and not note else ""
        trial_params = self._displayed_params(trial)
        n_steps = int(self.settings["length"])
        return {
            "number": trial.number, "state": states[trial.state.name], "model": self.space.names[model_index],
            **{column: trial_params.get(name) for name, column in names.items()},
            **{"seconds": note.get("seconds", np.nan)} | values,
            "steps": count_steps(trial, n_steps, bool(self.settings["by_window"])),
            "start": trial.user_attrs.get("start", ""), "attempt": int(trial.user_attrs.get(trial_recovery.ATTEMPT, 1)),
            "copy_of": note.get("copy_of"), "reason": note.get("reason", lost_reason),
        }  # fmt: skip

    def _objective_index(self, name: str | None) -> int:
        """The index of an objective; 0 for None."""
        if name is None:
            return 0
        if name not in self.objectives:
            raise ParameterError(
                f"`objective` must be one of {format_list(self.objectives)}, got {format_value(name)!r}.",
                parameter="objective",
                value=name,
            )
        return self.objectives.index(name)


def _format_gain(gain: float) -> str:
    """A gain in words, followed by the score it is compared with."""
    if not math.isfinite(gain):
        return "not comparable with"
    return f"{abs(gain):.1%} {'lower' if gain > 0 else 'higher'} than" if gain else "the same as"


@dataclass(frozen=True)
class _ReplayedTrial:
    """A trial that suggests the values of a finished trial."""

    trial: FrozenTrial

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """The recorded choice."""
        return self.trial.params[name]

    def suggest_int(self, name: str, low: int, high: int, **_: Any) -> int:
        """The recorded integer."""
        return int(self.trial.params[name])

    def suggest_float(self, name: str, low: float, high: float, **_: Any) -> float:
        """The recorded number."""
        return float(self.trial.params[name])
