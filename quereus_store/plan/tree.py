"""Plans as trees for people and programs: what EXPLAIN, ``Connection.explain`` and pictures are made of.

A :class:`PlanStep` is one operator with what was estimated of it and, after EXPLAIN ANALYZE, what was
measured.  It holds no plan nodes, so it may be kept, compared, printed and turned into JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operator and the operators below it.

    ``estimated_rows`` is what the optimizer reckons with (None where it does not).  ``rows``, ``runs``
    (how often the operator was started) and ``milliseconds`` (its own time, without the operators below) are
    measured: None in a plan that was not run, and for operators that run as a part of another one.
    """

    operator: str
    detail: str
    estimated_rows: float | None = None
    rows: int | None = None
    runs: int | None = None
    milliseconds: float | None = None
    children: tuple[PlanStep, ...] = ()

    @property
    def text(self) -> str:
        """The operator and what it does, in one line."""
        return f"{self.operator} {self.detail}".rstrip()

    @property
    def estimated_cost(self) -> float:
        """About how many rows this operator and those below it handle."""
        return (self.estimated_rows or 0.0) + sum(child.estimated_cost for child in self.children)

    @property
    def total_milliseconds(self) -> float | None:
        """The time of this operator and of those below it; None where nothing was measured."""
        times = [step.milliseconds for step, _ in self.walk() if step.milliseconds is not None]
        return sum(times) if times else None

    def walk(self, depth: int = 0) -> Iterator[tuple[PlanStep, int]]:
        """Every step with its depth, each before those below it."""
        yield self, depth
        for child in self.children:
            yield from child.walk(depth + 1)

    def as_dict(self) -> dict[str, Any]:
        """The tree as plain values."""
        return {
            "operator": self.operator,
            "detail": self.detail,
            "estimated_rows": self.estimated_rows,
            "estimated_cost": self.estimated_cost,
            "rows": self.rows,
            "runs": self.runs,
            "milliseconds": self.milliseconds,
            "children": [child.as_dict() for child in self.children],
        }

    def __str__(self) -> str:
        """The tree as indented lines."""
        return "\n".join("  " * depth + step.text for step, depth in self.walk())


@dataclass(slots=True)
class _Open:
    """A step whose children are still to come."""

    depth: int
    step: PlanStep
    children: list[PlanStep] = field(default_factory=list)


def assemble(steps: Iterable[tuple[int, PlanStep]]) -> tuple[PlanStep, ...]:
    """Trees from steps with their depths, each step before those below it."""
    roots = _Open(-1, PlanStep("", ""))
    stack = [roots]
    for depth, step in steps:
        _close_down_to(stack, depth)
        stack.append(_Open(depth, step))
    _close_down_to(stack, 0)
    return tuple(roots.children)


def _close_down_to(stack: list[_Open], depth: int) -> None:
    while stack[-1].depth >= depth:
        done = stack.pop()
        stack[-1].children.append(replace(done.step, children=tuple(done.children)))
