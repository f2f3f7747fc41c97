"""A page around the picture of a plan: the statement, the picture, the figures as a table.  One file."""

from __future__ import annotations

from html import escape

from quereus_store import PlanStep
from quereus_store.cli.plans.drawing import draw
from quereus_store.cli.plans.listing import count, is_measured, is_misjudged, milliseconds

_STYLE = """
body { font: 14px system-ui, sans-serif; color: #1c2733; background: white; margin: 24px; }
pre { background: #f4f6f8; padding: 12px; border-radius: 6px; overflow-x: auto; white-space: pre-wrap; }
.picture { overflow-x: auto; border: 1px solid #d5dde5; border-radius: 6px; }
table { border-collapse: collapse; margin-top: 16px; }
th, td { padding: 3px 12px; text-align: right; border-bottom: 1px solid #e5eaef; }
th:first-child, td:first-child { text-align: left; font-family: ui-monospace, monospace; white-space: pre; }
tr.misjudged td { color: #b3261e; }
"""


def page(plan: PlanStep, sql: str) -> str:
    """The HTML text of a page about a plan."""
    measured = is_measured(plan)
    title = "Query plan, measured" if measured else "Query plan"
    hint = "Rows flow upwards; the number on an edge is how many."
    if measured:
        hint += " The warmer a box, the more of the time it took."
        hint += " Dashed red: the estimate is off by more than ten times."
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f"<title>{title}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{title}</h1>",
            f"<pre>{escape(sql.strip())}</pre>",
            f"<p>{hint}</p>",
            f'<div class="picture">{draw(plan, title)}</div>',
            *_table(plan, measured),
            "</body></html>",
            "",
        ]
    )


def _table(plan: PlanStep, measured: bool) -> list[str]:
    heads = ["operator", "estimated rows", "estimated cost"]
    heads += ["rows", "runs", "own time"] if measured else []
    lines = ["<table><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    for step, depth in plan.walk():
        estimated = "" if step.estimated_rows is None else count(step.estimated_rows)
        cells = ["  " * depth + step.text, estimated, count(step.estimated_cost)]
        if measured:
            cells += ["" if value is None else count(value) for value in (step.rows, step.runs)]
            cells.append("" if step.milliseconds is None else milliseconds(step.milliseconds))
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr class="misjudged">{row}</tr>' if is_misjudged(step) else f"<tr>{row}</tr>")
    return [*lines, "</table>"]
