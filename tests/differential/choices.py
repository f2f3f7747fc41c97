"""A source of choices that can be replayed and made smaller.

A generator asks a :class:`Choices` for every decision.  The numbers it was given are
recorded; the same numbers make the same statement again.  A shorter or smaller list of
numbers makes a simpler statement, since 0 always means the simplest alternative and a
list that has run out gives 0.  That is all that shrinking needs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Decisions from a seed, or from a recorded list."""

    def __init__(self, seed: int | None = None, replay: Sequence[int] = ()) -> None:
        self.recorded: list[int] = []
        self._random = random.Random(seed) if seed is not None else None
        self._replay = replay

    def below(self, bound: int) -> int:
        """A number from 0 to ``bound`` - 1."""
        if self._random is not None:
            value = self._random.randrange(bound)
        else:
            position = len(self.recorded)
            value = self._replay[position] % bound if position < len(self._replay) else 0
        self.recorded.append(value)
        return value

    def one_of(self, alternatives: Sequence[T]) -> T:
        """One alternative; the simplest should stand first."""
        return alternatives[self.below(len(alternatives))]

    def chance(self, percent: int) -> bool:
        """True in about that share of cases."""
        return self.below(100) >= 100 - percent


def shrink(
    recorded: Sequence[int], fails: Callable[[Sequence[int]], bool], attempts: int = 2000
) -> list[int]:
    """A simpler list of choices that still fails."""
    best = list(recorded)
    left = attempts

    def try_it(candidate: list[int]) -> bool:
        nonlocal best, left
        left -= 1
        if left < 0 or candidate == best or not fails(candidate):
            return False
        best = candidate
        return True

    changed = True
    while changed and left > 0:
        changed = False
        size = max(1, len(best) // 2)
        while size >= 1:
            start = 0
            while start < len(best) and left > 0:
                block = best[start : start + size]
                shorter = best[:start] + best[start + size :]
                zeroed = best[:start] + [0] * len(block) + best[start + size :]
                if try_it(shorter):
                    changed = True
                elif any(block) and try_it(zeroed):
                    changed = True
                    start += size
                else:
                    start += size
            size //= 2
        for position in range(len(best)):
            for smaller in (best[position] // 2, best[position] - 1):
                if position < len(best) and 0 < smaller < best[position]:
                    changed |= try_it([*best[:position], smaller, *best[position + 1 :]])
    return best
