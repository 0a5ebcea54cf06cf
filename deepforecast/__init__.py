"""Time-series forecasting: one DataFrame in, forecasts out, every method in the same few words.

Names are resolved on first use, so that `import deepforecast` is light; `__init__.pyi` shows them to editors.
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"

_NAMES = {
    "Backtest": "evaluation.backtesting",
    "Capabilities": "core.capabilities",
    "Columns": "data.columns",
    "Forecaster": "core.forecaster",
    "Leaderboard": "evaluation.compare",
    "Panel": "data.panel",
    "Study": "tuning.study",
    "TuningResult": "tuning.result",
    "check": "data.checks",
    "compare": "evaluation.compare",
    "cross_validate": "evaluation.cross_validation",
    "datasets": "datasets",
    "decompose": "models.statistical.decomposition",
    "errors": "errors",
    "faithfulness": "evaluation.faithfulness",
    "fill_gaps": "data.checks",
    "load": "core.persistence",
    "param": "core.params",
    "plot": "plotting",
    "register": "core.registry",
    "score": "evaluation.score",
    "tune": "tuning.tune",
}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return [one for one in __dir__() if not one.startswith("_")]
    if name in _NAMES:
        module = _import_module(f"deepforecast.{_NAMES[name]}")
        value = module if _NAMES[name] == name else getattr(module, name)
    elif name in _models():
        value = getattr(_import_module(_models()[name]), name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'deepforecast' has no attribute {name!r}")
    else:
        from difflib import get_close_matches

        near = get_close_matches(name, __dir__(), n=3)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise AttributeError(f"module 'deepforecast' has no attribute {name!r}.{hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_NAMES, *_models(), "__version__"})


def _models() -> dict[str, str]:
    from deepforecast.core.index import MODELS

    return MODELS
