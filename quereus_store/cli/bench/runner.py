"""Running the cases: engines take turns within every round, and the best round counts.

Taking turns spreads whatever else the machine does over all engines alike.  The first round also
compares the answers: a benchmark of a wrong answer says nothing.

A case gets as many rounds as its time allows, but two of them at least: the first fills caches, and a
long round needs fewer repetitions to be told from noise than a short one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from quereus_store.cli.bench.case import Case
from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import Database
from quereus_store.cli.diagnostics import CommandError
from quereus_store.errors import NotSupportedError

_LEAST_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Timing:
    """The best time of one case on one engine, in seconds; None with the reason it did not run."""

    seconds: float | None
    reason: str = ""


Results = dict[str, dict[str, Timing]]
"""By case name, then by engine name."""


def rounds(repeat: int, seconds: float) -> Iterator[int]:
    """Numbers of the rounds: ``repeat`` of them, but none after the first two once the time is over."""
    started = time.perf_counter()
    for number in range(repeat):
        if number >= _LEAST_ROUNDS and time.perf_counter() - started > seconds:
            return
        yield number


def run_case(
    case: Case, databases: Sequence[Database], data: Data, repeat: int, seconds: float = inf
) -> dict[str, Timing]:
    """Time one case on all engines, the best of :func:`rounds`.

    :raises CommandError: when two engines give different rows.
    """
    best: dict[str, Timing] = {}
    answer: tuple[str, Any] | None = None
    taking_part = [db for db in databases if db.engine.durable or not case.only_durable]
    for round_number in rounds(repeat, seconds):
        for database in taking_part:
            name = database.engine.name
            if name in best and best[name].seconds is None:
                continue
            try:
                taken, result = _time_once(case, database, data)
            except NotSupportedError as error:
                best[name] = Timing(None, str(error))
                continue
            if round_number == 0 and result is not None:
                answer = answer or (name, _comparable(result))
                if _comparable(result) != answer[1]:
                    raise CommandError(f"{case.name}: {name} and {answer[0]} give different rows")
            previous = best.get(name)
            if previous is None or previous.seconds is None or taken < previous.seconds:
                best[name] = Timing(taken)
            del result
    return best


def ratio(timings: Mapping[str, Timing], name: str, rival: str | None) -> float | None:
    """How many times faster than its rival an engine is; None when one did not run."""
    ours = timings.get(name)
    theirs = timings.get(rival or "")
    if ours is None or theirs is None or not ours.seconds or not theirs.seconds:
        return None
    return theirs.seconds / ours.seconds


def _time_once(case: Case, database: Database, data: Data) -> tuple[float, Any]:
    case.before(database, data)
    gc.collect()
    gc.disable()
    try:
        started = time.perf_counter()
        result = case.run(database, data)
        return time.perf_counter() - started, result
    finally:
        gc.enable()
        case.after(database, data)


def _comparable(result: Any) -> Any:
    return sorted(map(tuple, result)) if result and isinstance(result[0], tuple) else result
