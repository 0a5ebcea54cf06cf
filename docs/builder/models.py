"""The model table, and a page for each model: all from the declarations in the registry."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from builder.docstrings import markdown
from builder.entries import entry, members
from builder.page import Page, table
from deepforecast.cli.flags import legal
from deepforecast.cli.models import family_of
from deepforecast.core import registry
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Param, declared_params

FAMILIES = {
    "baselines": "Baselines",
    "statistical": "Classical models",
    "additive": "Additive models",
    "regression": "Regression on features",
    "neural": "Networks",
    "combine": "Models around models",
}
CALIBRATED = '`intervals="conformal"`'
BANDS = {"analytic": "by formula", "samples": "from sample paths", "quantiles": "learned quantiles", None: CALIBRATED}
FILLED = 'refused, or filled by `missing="interpolate"`, `"ffill"`, `"zero"`'
ROLES = ("future", "past", "static")
ABOUT = """# All models

Every model has the same `fit`, `predict`, `simulate`, `update`, `explain` and `save` (see
[the contract](../reference/forecasting.md)). This table is made from what the models declare of themselves; the
[contract checks](../reference/testing.md) hold them to it. Not sure which one? [Which model for my data?](../guide.md)

**covariates**: columns it uses; *future* are known ahead, *past* up to now, *static* once a series. **gaps**: takes missing
values as they are; others do with `missing="interpolate"` (or `"ffill"`, `"zero"`). **bands**: where intervals come from.
**learns from**: each series by itself, or all of them together (then it forecasts series never seen in `fit`). Any model gets
calibrated bands by `Conformal`.
"""


def pages() -> list[Page]:
    """The table and all models, family by family."""
    classes = list(registry.models())
    known = {family_of(cls.__name__) for cls in classes}
    ours = {key: title for key, title in FAMILIES.items() if key in known}
    families = ours | {key: key for key in sorted(known - set(FAMILIES))}
    found, parts = [], [ABOUT]
    for family, title in families.items():
        own = [cls for cls in classes if family_of(cls.__name__) == family]
        parts.append(f"## {title}\n\n{_table(own)}")
        found += [Page(f"models/{cls.__name__}.md", cls.__name__, _page(cls, title)) for cls in own]
    return [Page("models/index.md", "All models", "\n\n".join(parts) + "\n"), *found]


def family_title(name: str) -> str:
    """The family of a model, as its pages call it."""
    family = family_of(name)
    return FAMILIES.get(family, family)


def _table(classes: list[type[Forecaster]]) -> str:
    head = ["model", "what it does", "covariates", "gaps", "bands", "learns from"]
    return table(head, [_row(cls) for cls in classes])


def _row(cls: type[Forecaster]) -> list[str]:
    able = cls.capabilities
    roles = ", ".join(role for role in ROLES if able.can_use(role)) or "–"
    first = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    what = " ".join(first.split()).partition(". ")[0].rstrip(".")
    return [f"`{cls.__name__}`", what, roles, _yes(able.missing), BANDS[able.distribution], _scope(able)]


def _page(cls: type[Forecaster], family: str) -> str:
    able, name = cls.capabilities, cls.__name__
    roles = ", ".join(role for role in ROLES if able.can_use(role)) or "none"
    facts = [
        ["family", family],
        ["learns from", _scope(able)],
        ["covariates", roles + (", categories as they are" if able.categorical else "")],
        ["missing values", "taken as they are" if able.missing else FILLED],
        ["bands", BANDS[able.distribution]],
        ["target", {"real": "any numbers", "nonnegative": "0 and above", "positive": "above 0"}[able.domain]],
        ["sample paths (`simulate`)", _yes(able.simulates)],
        ["`explain`", _yes(able.explains)],
    ]
    more = [one for one in members(cls) if not hasattr(Forecaster, one) and one != "examples"]
    parts = [
        f"# {name}",
        f"```python\nfrom deepforecast import {name}\n```",
        markdown(cls.__doc__),
        "## What it can do",
        table(["", ""], facts),
        "Settings may narrow this: `model.capabilities` says what an object can do.",
        "## Parameters",
        *_parameters(cls),
        *(["## More than every model has"] if more else []),
        *(entry(f"{name}.{one}", inspect.getattr_static(cls, one), 3, one) for one in more),
    ]
    return "\n\n".join(parts) + "\n"


def _parameters(cls: type[Forecaster]) -> list[str]:
    """A table of its own parameters, and one for each base that brings some, folded up."""
    left, blocks = declared_params(cls), []
    for base in cls.__mro__:
        own: Mapping[str, Any] = vars(base).get("_own_params", {})
        here = {name: left.pop(name) for name in declared_params(cls) if name in own and name in left}
        if here:
            blocks.append((base, table(["parameter", "default", "takes", "searched", "meaning"], _rows(here))))
    if not blocks:
        return ["It has none."]
    first = [blocks[0][1]] if blocks[0][0] is not Forecaster else ["None of its own."]
    rest = blocks[1:] if blocks[0][0] is not Forecaster else blocks
    folded = [f'<details markdown="1"><summary>{_whose(base)}</summary>\n\n{text}\n\n</details>' for base, text in rest]
    return [*first, *folded]


def _whose(base: type) -> str:
    if base is Forecaster:
        return "those of every model"
    first = (base.__doc__ or base.__name__).partition("\n")[0].rstrip(".")
    return f"those it shares with its family ({base.__name__.lstrip('_')}: {first.replace('`', '')})"


def _rows(params: Mapping[str, Param]) -> list[list[str]]:
    return [[f"`{name}`", _default(one), legal(one), _searched(one), one.help] for name, one in params.items()]


def _default(one: Param) -> str:
    return "*needed*" if one.required else f"`{one.default!r}`"


def _searched(one: Param) -> str:
    """Where `tune` looks."""
    if one.search is not None:
        return ", ".join(f"`{value!r}`" for value in one.search)
    if not one.is_searched:
        return "–"
    return f"{one.low} to {one.high}" + (", by factors" if one.log else "") + (f", step {one.step}" if one.step else "")


def _scope(able: Any) -> str:
    return "each series" if able.local else "each series, bands from all" if able.pooled else "all series"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
