"""The picture of a plan: operators as boxes, edges with the rows that flow up along them.

One self-contained SVG: no script, no font, no other file.  After a run the warmth of a box is its share
of the time, and a dashed border marks an estimate that is off by more than ten times.
"""

from __future__ import annotations

import math
from html import escape

from quereus_store import PlanStep
from quereus_store.cli.plans.layout import BOX_WIDTH, LINE_HEIGHT, PADDING, Box, lay_out
from quereus_store.cli.plans.listing import (
    estimate_line,
    is_measured,
    is_misjudged,
    measured_line,
    rows_word,
)

_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1c2733; }
.operator { font-weight: bold; font-size: 13px; }
.detail { font-family: ui-monospace, monospace; font-size: 11px; }
.figures { fill: #4a5a6a; font-size: 11px; }
.box { stroke: #5b7083; rx: 6; }
.misjudged { stroke: #b3261e; stroke-dasharray: 5 3; stroke-width: 2; }
.edge { fill: none; stroke: #8fa1b3; }
.rows { font-size: 11px; fill: #33475b; paint-order: stroke; stroke: white; stroke-width: 4px; }
"""

_KIND_COLOURS = {
    "SCAN": "#e3f0e6",
    "SEEK": "#e3f0e6",
    "FUNCTION": "#e3f0e6",
    "VALUES": "#e3f0e6",
    "SUBQUERY": "#eeeeee",
    "INSERT": "#f3e6f5",
    "UPDATE": "#f3e6f5",
    "DELETE": "#f3e6f5",
}
_COLOUR = "#e8eef5"
_JOIN_COLOUR = "#fdf3dc"


def draw(plan: PlanStep, title: str = "Query plan") -> str:
    """The SVG text of a plan."""
    measured = is_measured(plan)
    layout = lay_out(plan, figures=2 if measured else 1)
    whole = plan.total_milliseconds if measured else None
    boxes = list(layout.root.walk())
    width, height = round(layout.width), round(layout.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for box in boxes:
        parts += [_edge(box, child) for child in box.children]
    for box in boxes:
        parts += _box(box, whole)
    return "\n".join([*parts, "</svg>", ""])


def _edge(parent: Box, child: Box) -> str:
    """A curve from a box up to its parent, the thicker the more rows, with their number beside it."""
    step = child.step
    number = step.rows if step.rows is not None else step.estimated_rows
    thickness = 1.0 if not number else min(1.0 + math.log10(max(number, 1.0)), 8.0)
    half = (parent.bottom + child.top) / 2
    path = (
        f"M{child.middle:.0f},{child.top:.0f} C{child.middle:.0f},{half:.0f} "
        f"{parent.middle:.0f},{half:.0f} {parent.middle:.0f},{parent.bottom:.0f}"
    )
    edge = f'<path class="edge" stroke-width="{thickness:.1f}" d="{path}"/>'
    if number is None:
        return edge
    label = rows_word(number) if step.rows is not None else f"≈ {rows_word(number)}"
    # On the side that the curve bends away from.
    left = child.middle < parent.middle
    x, anchor = (child.middle - 8, "end") if left else (child.middle + 8, "start")
    place = f'x="{x:.0f}" y="{child.top - 8:.0f}" text-anchor="{anchor}"'
    return f'{edge}\n<text class="rows" {place}>{label}</text>'


def _box(box: Box, whole: float | None) -> list[str]:
    step = box.step
    kind = "box misjudged" if is_misjudged(step) else "box"
    parts = [
        f"<g><title>{escape(step.text)}</title>",
        f'<rect class="{kind}" x="{box.left:.0f}" y="{box.top:.0f}" width="{BOX_WIDTH}" '
        f'height="{box.height:.0f}" rx="6" fill="{_fill(step, whole)}"/>',
    ]
    lines = [("operator", step.operator), *(("detail", line) for line in box.detail)]
    figures = [estimate_line(step), measured_line(step, whole)]
    lines += [("figures", line) for line in figures if line]
    for number, (style, text) in enumerate(lines):
        x, y = box.left + PADDING, box.top + PADDING + LINE_HEIGHT * (number + 0.8)
        parts.append(f'<text class="{style}" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>')
    return [*parts, "</g>"]


def _fill(step: PlanStep, whole: float | None) -> str:
    """The colour of a box: by its share of the time where that is known, else by its kind."""
    if whole and step.milliseconds is not None:
        share = min(step.milliseconds / whole, 1.0)
        return f"hsl(28 90% {97 - 32 * share:.0f}%)"
    return _KIND_COLOURS.get(step.operator, _JOIN_COLOUR if "JOIN" in step.operator else _COLOUR)
