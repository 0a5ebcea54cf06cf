"""The table of models and a page for each model, from their declared capabilities and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from builder.docstrings import markdown
from builder.entries import entry, members
from builder.page import Page, table
from deepforecast.cli.flags import describe_values
from deepforecast.cli.models import model_family
from deepforecast.core import registry
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Param, declared_params

FAMILIES = {
    "baselines": "Baselines",
    "statistical": "Classical models",
    "prophet": "Prophet",
    "regression": "Regression on features",
    "neural": "Neural networks",
    "combine": "Wrappers of models",
}
CONFORMAL = '`intervals="conformal"`'
INTERVALS = {"analytic": "analytic", "samples": "from sample paths", "quantiles": "quantile regression", None: CONFORMAL}
MISSING_REFUSED = 'not accepted; imputed with `missing="interpolate"`, `"ffill"` or `"zero"`'
ROLES = ("future", "past", "static")
ABOUT = """# All models

Every model has the same `fit`, `predict`, `simulate`, `update`, `explain` and `save` (see
[the interface](../reference/forecasting.md)). This table is generated from the declared capabilities of the models, which the
[contract checks](../reference/testing.md) verify. To choose a model, see [Which model for my data?](../guide.md)

**covariates**: roles the model uses; *future* covariates are known over the horizon, *past* covariates up to the cutoff,
*static* covariates are constant per series. **missing values**: whether the model accepts them; others impute them with
`missing="interpolate"` (or `"ffill"`, `"zero"`). **intervals**: source of the prediction intervals. **trained on**: each series
separately (local models), or all series together (global models, which also forecast series that were not in `fit`).
`Conformal` adds calibrated prediction intervals to any model.
"""


def pages() -> list[Page]:
    """Return the table of models and one page per model, by family."""
    classes = list(registry.models())
    used_families = {model_family(cls.__name__) for cls in classes}
    titled_families = {key: title for key, title in FAMILIES.items() if key in used_families}
    families = titled_families | {key: key for key in sorted(used_families - set(FAMILIES))}
    model_pages, sections = [], [ABOUT]
    for family, title in families.items():
        family_models = [cls for cls in classes if model_family(cls.__name__) == family]
        sections.append(f"## {title}\n\n{_table(family_models)}")
        model_pages += [Page(f"models/{cls.__name__}.md", cls.__name__, _page(cls, title)) for cls in family_models]
    return [Page("models/index.md", "All models", "\n\n".join(sections) + "\n"), *model_pages]


def family_title(name: str) -> str:
    """Return the title of the family of a model."""
    family = model_family(name)
    return FAMILIES.get(family, family)


def _table(classes: list[type[Forecaster]]) -> str:
    head = ["model", "description", "covariates", "missing values", "intervals", "trained on"]
    return table(head, [_row(cls) for cls in classes])


def _row(cls: type[Forecaster]) -> list[str]:
    capabilities = cls.capabilities
    roles = ", ".join(role for role in ROLES if capabilities.can_use(role)) or "–"
    first = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    summary = " ".join(first.split()).partition(". ")[0].rstrip(".")
    return [
        f"`{cls.__name__}`",
        summary,
        roles,
        _yes_or_no(capabilities.missing),
        INTERVALS[capabilities.distribution],
        _scope(capabilities),
    ]


def _page(cls: type[Forecaster], family: str) -> str:
    capabilities, name = cls.capabilities, cls.__name__
    roles = ", ".join(role for role in ROLES if capabilities.can_use(role)) or "none"
    facts = [
        ["family", family],
        ["trained on", _scope(capabilities)],
        ["covariates", roles + ("; categorical without encoding" if capabilities.categorical else "")],
        ["observation weights", "used in training" if capabilities.weights else "not used"],
        ["missing values", "accepted" if capabilities.missing else MISSING_REFUSED],
        ["prediction intervals", INTERVALS[capabilities.distribution]],
        ["target", {"real": "real", "nonnegative": "nonnegative", "positive": "positive"}[capabilities.domain]],
        ["sample paths (`simulate`)", _yes_or_no(capabilities.simulates)],
        ["`explain`", _yes_or_no(capabilities.explains)],
    ]
    extra_members = [member for member in members(cls) if not hasattr(Forecaster, member) and member != "examples"]
    sections = [
        f"# {name}",
        f"```python\nfrom deepforecast import {name}\n```",
        markdown(cls.__doc__),
        "## Capabilities",
        table(["", ""], facts),
        "Parameters may restrict these; `model.capabilities` are those of an instance.",
        "## Parameters",
        *_parameters(cls),
        *(["## Additional methods"] if extra_members else []),
        *(entry(f"{name}.{member}", inspect.getattr_static(cls, member), 3, member) for member in extra_members),
    ]
    return "\n\n".join(sections) + "\n"


def _parameters(cls: type[Forecaster]) -> list[str]:
    """Return a table of the parameters of the class, and a collapsed one for each base class that declares some."""
    remaining, tables = declared_params(cls), []
    for base in cls.__mro__:
        class_params: Mapping[str, Any] = vars(base).get("_own_params", {})
        own_params = {name: remaining.pop(name) for name in declared_params(cls) if name in class_params and name in remaining}
        if own_params:
            tables.append((base, table(["parameter", "default", "values", "search range", "description"], _rows(own_params))))
    if not tables:
        return ["None."]
    first = [tables[0][1]] if tables[0][0] is not Forecaster else ["None besides those of every model."]
    base_tables = tables[1:] if tables[0][0] is not Forecaster else tables
    folded = [
        f'<details markdown="1"><summary>{_group_title(base)}</summary>\n\n{text}\n\n</details>' for base, text in base_tables
    ]
    return [*first, *folded]


def _group_title(base: type) -> str:
    if base is Forecaster:
        return "Parameters of every model"
    first = (base.__doc__ or base.__name__).partition("\n")[0].rstrip(".")
    return f"Parameters shared by the family ({base.__name__.lstrip('_')}: {first.replace('`', '')})"


def _rows(parameters: Mapping[str, Param]) -> list[list[str]]:
    return [
        [f"`{name}`", _default(param), describe_values(param), _search_range(param), param.full_help]
        for name, param in parameters.items()
    ]


def _default(param: Param) -> str:
    return "*required*" if param.required else f"`{param.default!r}`"


def _search_range(param: Param) -> str:
    """Return the default search space of `tune`."""
    if param.search is not None:
        return ", ".join(f"`{value!r}`" for value in param.search)
    if not param.is_searched:
        return "–"
    return (
        f"{param.low} to {param.high}" + (", log scale" if param.log else "") + (f", step {param.step}" if param.step else "")
    )


def _scope(capabilities: Any) -> str:
    return "each series" if capabilities.local else "each series, intervals from all" if capabilities.pooled else "all series"


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"
