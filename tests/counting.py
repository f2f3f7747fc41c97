"""What tests count with."""

from __future__ import annotations


class Counter:
    """A function of SQL that gives its argument back and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, value: object) -> object:
        self.calls += 1
        return value
