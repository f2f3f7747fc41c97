"""The bar chart: ratios against ``sqlite3`` on a logarithmic scale, as a small hand-written SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_COLOURS = ("#3b6ea5", "#d98c3f", "#6a9a5b", "#8c5f9e")
_LABELS, _PLOT, _BAR, _GAP, _TOP = 190, 560, 11, 14, 64
_TICKS = (0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class Bars:
    """The bars of one case: a ratio a series; None where a series has no figure."""

    label: str
    values: Sequence[float | None]


def bar_chart(title: str, series: Sequence[str], groups: Sequence[Bars]) -> str:
    """Draw the chart; returns the SVG text."""
    known = [value for group in groups for value in group.values if value]
    low = min([0.5, *known])
    high = max([2.0, *known])
    ticks = [tick for tick in _TICKS if low / 2 < tick < high * 2]
    first, last = math.log2(ticks[0]), math.log2(ticks[-1])

    def x_of(value: float) -> float:
        share = (math.log2(value) - first) / (last - first)
        return _LABELS + _PLOT * min(max(share, 0.0), 1.0)

    group_height = _BAR * len(series) + _GAP
    bottom = _TOP + group_height * len(groups)
    width, height = _LABELS + _PLOT + 60, bottom + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="16" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
        *_legend(series),
        *_grid(ticks, x_of, bottom),
    ]
    for number, group in enumerate(groups):
        top = _TOP + group_height * number
        middle = top + _BAR * len(series) / 2 + 4
        parts.append(
            f'<text x="{_LABELS - 8}" y="{middle:.0f}" text-anchor="end">{escape(group.label)}</text>'
        )
        for position, value in enumerate(group.values):
            if value:
                parts += _bar(x_of(1.0), x_of(value), top + _BAR * position, value, _COLOURS[position])
    return "\n".join([*parts, "</svg>", ""])


def _legend(series: Sequence[str]) -> list[str]:
    parts = []
    for position, name in enumerate(series):
        x = _LABELS + position * 200
        parts.append(f'<rect x="{x}" y="36" width="12" height="12" fill="{_COLOURS[position]}"/>')
        parts.append(f'<text x="{x + 18}" y="46">{escape(name)}</text>')
    return parts


def _grid(ticks: Sequence[float], x_of: Callable[[float], float], bottom: float) -> list[str]:
    parts = []
    for tick in ticks:
        x = x_of(tick)
        colour, line = ("#333", 1.5) if tick == 1 else ("#ddd", 1)
        parts.append(
            f'<line x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="{colour}" '
            f'stroke-width="{line}"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}×</text>')
    return parts


def _bar(one: float, end: float, top: float, value: float, colour: str) -> list[str]:
    left, width = min(one, end), max(abs(end - one), 1.0)
    text_x = max(one, end) + 4
    return [
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_BAR - 2}" fill="{colour}"/>',
        f'<text x="{text_x:.1f}" y="{top + _BAR - 3:.1f}" font-size="10">{value:.2f}×</text>',
    ]
