"""A plan's figures in words, and the plan as a table of text."""

from __future__ import annotations

from quereus_store import PlanStep

_OFF = 10


def count(number: float) -> str:
    """A number of rows with thousands set apart."""
    return f"{round(number):,}"


def milliseconds(time: float) -> str:
    """A time in three significant digits or so."""
    return f"{time:.2f} ms" if time < 100 else f"{time:,.0f} ms"


def rows_word(number: float) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count(number)} row{'' if round(number) == 1 else 's'}"


def is_measured(plan: PlanStep) -> bool:
    """Whether a plan carries the figures of a run."""
    return any(step.rows is not None for step, _ in plan.walk())


def estimate_line(step: PlanStep) -> str:
    """What the optimizer reckons with."""
    if step.estimated_rows is None:
        return ""
    return f"about {rows_word(step.estimated_rows)}, cost {count(step.estimated_cost)}"


def measured_line(step: PlanStep, whole: float | None) -> str:
    """What a run measured; the time also as a share of the whole."""
    if step.rows is None:
        return ""
    parts = [rows_word(step.rows)]
    if step.runs is not None and step.runs != 1:
        parts.append(f"{count(step.runs)} runs")
    if step.milliseconds is not None:
        share = f" ({step.milliseconds / whole:.0%})" if whole else ""
        parts.append(milliseconds(step.milliseconds) + share)
    return ", ".join(parts)


def is_misjudged(step: PlanStep) -> bool:
    """Whether the estimate is off by more than ten times."""
    if step.rows is None or step.estimated_rows is None or not step.runs:
        return False
    actual, estimated = max(step.rows / step.runs, 1.0), max(step.estimated_rows, 1.0)
    return max(actual, estimated) > _OFF * min(actual, estimated)


def listing(plan: PlanStep) -> str:
    """The plan as lines: the tree, then the figures of each operator."""
    measured = is_measured(plan)
    whole = plan.total_milliseconds
    texts = ["  " * depth + step.text for step, depth in plan.walk()]
    width = max(map(len, texts))
    lines = []
    for text, (step, _) in zip(texts, plan.walk(), strict=True):
        figures = [estimate_line(step), *([measured_line(step, whole)] if measured else [])]
        lines.append(f"{text:<{width}}  {'; measured '.join(filter(None, figures))}".rstrip())
    return "\n".join(lines)
