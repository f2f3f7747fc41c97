"""Where the boxes of a plan stand: the result at the top, what it is made of below.

Each subtree gets a strip as wide as its own box or its children's strips together, whichever is wider;
a box stands in the middle above its children.  So boxes and edges never cross.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from quereus_store import PlanStep

BOX_WIDTH = 250
LINE_HEIGHT = 16
PADDING = 10
_LETTERS = 35
_MOST_LINES = 4
_GAP_BESIDE = 24
_GAP_BELOW = 46
_MARGIN = 16.0


@dataclass(frozen=True, slots=True)
class Box:
    """One operator's place, its wrapped detail, and the boxes below it."""

    step: PlanStep
    left: float
    top: float
    height: float
    detail: tuple[str, ...]
    children: tuple[Box, ...]

    @property
    def middle(self) -> float:
        """The horizontal middle."""
        return self.left + BOX_WIDTH / 2

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    def walk(self) -> Iterator[Box]:
        """This box and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Layout:
    """The placed boxes and the size of the picture."""

    root: Box
    width: float
    height: float


def lay_out(plan: PlanStep, figures: int = 1) -> Layout:
    """Place the boxes of a plan; each has room for so many lines of ``figures``."""
    heights: list[float] = []
    _heights(plan, 0, heights, figures)
    tops = [_MARGIN]
    for height in heights:
        tops.append(tops[-1] + height + _GAP_BELOW)
    root = _place(plan, _MARGIN, 0, tops, figures)
    return Layout(root, _strip(plan) + 2 * _MARGIN, tops[-1] - _GAP_BELOW + _MARGIN)


def _wrapped(step: PlanStep) -> tuple[str, ...]:
    lines = textwrap.wrap(step.detail, _LETTERS)
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], lines[_MOST_LINES - 1][: _LETTERS - 1] + "…"]
    return tuple(lines)


def _height(step: PlanStep, figures: int) -> float:
    return 2 * PADDING + LINE_HEIGHT * (1 + len(_wrapped(step)) + figures)


def _heights(step: PlanStep, level: int, heights: list[float], figures: int) -> None:
    """The height of each level: that of its highest box."""
    if level == len(heights):
        heights.append(0.0)
    heights[level] = max(heights[level], _height(step, figures))
    for child in step.children:
        _heights(child, level + 1, heights, figures)


def _strip(step: PlanStep) -> float:
    return max(BOX_WIDTH, _strip_below(step))


def _strip_below(step: PlanStep) -> float:
    return sum(map(_strip, step.children)) + _GAP_BESIDE * max(len(step.children) - 1, 0)


def _place(step: PlanStep, left: float, level: int, tops: list[float], figures: int) -> Box:
    width = _strip(step)
    at = left + (width - _strip_below(step)) / 2
    children = []
    for child in step.children:
        children.append(_place(child, at, level + 1, tops, figures))
        at += _strip(child) + _GAP_BESIDE
    box_left = left + (width - BOX_WIDTH) / 2
    if children:
        box_left = (children[0].left + children[-1].left) / 2
    return Box(step, box_left, tops[level], _height(step, figures), _wrapped(step), tuple(children))
