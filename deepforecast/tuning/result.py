"""What a search found: the best configuration, every trial, what mattered, and how much of it holds on windows not searched."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from deepforecast.core.forecaster import Forecaster
from deepforecast.errors import ParameterError, SaveError, shown, some
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
        text, as `None`), `seconds`, `steps` (how far it came, in hundredths of a window), `start` (what it began from, if it
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

    def importance(self, by: str = "ped_anova", objective: str | None = None) -> pd.DataFrame:
        """How much each parameter mattered, the most first: columns `parameter`, `importance` (shares of the whole).

        By PED-ANOVA (fast, about the better trials) or by "fanova" (a forest over all trials). From four trials on that differ;
        parameters that not all trials have (of one model of several) are left out.
        """
        import pandas as pd
        from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator, get_param_importances

        if by not in ("ped_anova", "fanova"):
            raise ParameterError(f"by is 'ped_anova' or 'fanova'; got {shown(by)!r}.")
        place = self._objective(objective)
        done = [one for one in self._counting() if one.state == TrialState.COMPLETE and one.params]
        drawn = [one for one in done if survival.GIVEN not in one.user_attrs] or done  # what is given need not lie in its range
        shared = set.intersection(*(set(one.params) for one in drawn)) if drawn else set()
        done = [one for one in done if shared <= set(one.params)]
        values = {one.values[place] for one in done}
        if len(done) < 4 or len(values) < 2 or not shared:
            raise ParameterError(
                f"Importance is found by comparing trials, at least 4 of different scores; there are {len(done)} with "
                f"{len(values)} different. Run more trials."
            )
        with quiet():
            study = optuna.create_study(directions=["minimize"])
            for one in done:
                params = {name: one.params[name] for name in sorted(shared)}
                kinds = {name: one.distributions[name] for name in params}
                study.add_trial(optuna.create_trial(params=params, distributions=kinds, value=one.values[place]))
            evaluator: Any = FanovaImportanceEvaluator(seed=0) if by == "fanova" else PedAnovaImportanceEvaluator()
            found = get_param_importances(study, evaluator=evaluator)
        return pd.DataFrame({"parameter": list(found), "importance": list(found.values())})

    def plot(self, kind: str = "history", *, objective: str | None = None) -> Any:
        """A figure of plotly (an extra): "history", "importance", "slices", "parallel" (coordinates), "pareto" of several
        objectives."""
        from deepforecast.plotting import tuning as pictures

        if kind not in PLOTS:
            raise ParameterError(f"kind is one of {', '.join(map(repr, PLOTS))}; got {shown(kind)!r}.")
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
            raise SaveError(f"A study is saved to a new file; {shown(target)} is there. Say another path, or remove it.")
        if target.lower().endswith(SQLITE):
            raise SaveError(f"A study is saved as a journal; {shown(target)} is a name of SQLite files. Say study.log.")
        if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
            raise SaveError(f"A study is saved to a folder that exists; that of {shown(target)} does not. Make it first.")
        with quiet():
            optuna.copy_study(
                from_study_name=self.study.study_name, from_storage=self.study._storage, to_storage=journal(target)
            )

    def __repr__(self) -> str:
        counts = self.trials["state"].value_counts()
        told = ", ".join(f"{count} {state}" for state, count in counts.items())
        best = f"{self.objectives[0]} {self.best_value:.6g} in trial {self.best_trial.number}"
        name = shown(self.study.study_name)
        return f"TuningResult({name}: {len(self.trials)} trials ({told}); best {best}: {self.best_model!r})"

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
            raise ParameterError(f"objective is one of {some(self.objectives)}; got {shown(name)!r}.")
        return self.objectives.index(name)


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
