"""Colours, dashes and opacities of plots.

Colours have a contrast of 3 : 1 on white and on dark pages (#111111), and are distinguishable for
colour-blind readers.
"""

from __future__ import annotations

from deepforecast.plotting.chart import Dash

COLORS = ("#0072B2", "#D55E00", "#009E73", "#9966FF", "#994466", "#CC79A7")
NEUTRAL = "#7A7A7A"  # the same distance from white and from a dark page
SHADES = ((0.0, "#FFFFFF"), (0.6, "#0072B2"), (1.0, "#00304D"))  # on white, from 0 to the maximum
SHADE_COLOR = "#3A96E0"  # the same on an unknown background, by opacity
COLOR_POWER = 2 / 3  # exponent of value / maximum, makes small values visible
OPACITY_POWER = 0.45  # the same on an unknown background, which may be dark
DASHES: tuple[Dash, ...] = ("solid", "dash", "dot", "dashdot")


def model_style(index: int) -> tuple[str, Dash]:
    """Colour and dash of the model at `index`; colours repeat with another dash.

    >>> model_style(0), model_style(6)
    (('#0072B2', 'solid'), ('#0072B2', 'dash'))
    """
    return COLORS[index % len(COLORS)], DASHES[index // len(COLORS) % len(DASHES)]


def band_opacity(n_levels: int, n_models: int) -> float:
    """Opacity of one prediction interval, so that the overlap of all leaves the line visible.

    Nested intervals overlap, so the innermost is the darkest; more models lower the opacity.
    """
    total_opacity = (0.28 if n_levels < 2 else 0.46) / (1 + 0.35 * (n_models - 1))
    return float(1 - (1 - total_opacity) ** (1 / max(n_levels, 1)))


def stacked_opacity(opacity: float, depth: int) -> float:
    """Resulting opacity of `depth` overlapping areas of this opacity."""
    return float(1 - (1 - opacity) ** depth)


def format_compact(value: float) -> str:
    """Format a number with as few digits as possible.

    >>> format_compact(80.0), format_compact(97.5), format_compact(12345.678), format_compact(0.0123456)
    ('80', '97.5', '12,346', '0.01235')
    """
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def shorten(value: object, longest: int = 40) -> str:
    """`value` in at most `longest` characters, omitting the middle.

    >>> shorten("store_0001_item_0017_north", 15)
    'store_0…7_north'
    """
    text = _escape(str(value))
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[-tail:]}"


def _escape(text: str) -> str:
    """Replace control characters by their escape sequences."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
