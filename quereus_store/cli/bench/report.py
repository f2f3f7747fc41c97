"""The figures: tables for the screen, JSON for comparison between runs.

The tables of cases and of the floor are printed line by line, each as soon as it is measured.
"""

from __future__ import annotations

import json
import platform
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table

from quereus_store.cli.bench.case import Case
from quereus_store.cli.bench.chart import Bars, bar_chart
from quereus_store.cli.bench.engines import Engine
from quereus_store.cli.bench.floor import Floor
from quereus_store.cli.bench.growth import Growth
from quereus_store.cli.bench.runner import Results, Timing, ratio

_EACH = "µs each"
_LEGEND = """× is the time of sqlite3 over ours: memory against sqlite3 in memory,
the others against its file (WAL, synchronous=full). Above 1 we are faster; ! misses a goal: a ratio the one
in brackets, a time the microseconds that a single row may take.
"""


class LineTable:
    """A table whose lines are printed one at a time; columns have fixed widths, the first is left-aligned."""

    def __init__(self, stream: TextIO, title: str, columns: Sequence[tuple[str, int]]) -> None:
        self._stream = stream
        self._widths = [max(len(name), width) for name, width in columns]
        print(f"\n{title}", file=stream)
        self.line([name for name, _ in columns])
        print("─" * (sum(self._widths) + 2 * len(columns) - 2), file=stream, flush=True)

    def line(self, cells: Sequence[str]) -> None:
        """Print one line."""
        first, *others = self._widths
        aligned = [cells[0].ljust(first), *map(str.rjust, cells[1:], others)]
        print("  ".join(aligned).rstrip(), file=self._stream, flush=True)


class ResultTable:
    """Times and ratios, one line a case; a ratio below its goal is marked."""

    def __init__(self, stream: TextIO, cases: Sequence[Case], engines: Sequence[Engine], rows: int) -> None:
        self._engines = engines
        self._compared = [engine for engine in engines if engine.rival in {other.name for other in engines}]
        self._table = LineTable(
            stream,
            f"{rows:,} rows, best times. {_LEGEND}",
            [
                ("case", max(len(case.name) for case in cases)),
                ("unit", len(_EACH)),
                *((engine.title, 8) for engine in engines),
                *((f"{engine.title} ×", 12) for engine in self._compared),
            ],
        )

    def line(self, case: Case, timings: Mapping[str, Timing]) -> None:
        """Print the line of one case."""
        self._table.line(
            [
                case.name,
                _EACH if case.operations else "ms",
                *(_time_text(case, engine, timings.get(engine.name)) for engine in self._engines),
                *(_ratio_text(case, engine, timings) for engine in self._compared),
            ]
        )


class FloorTable:
    """Raw costs, each with the engine's time for the same work."""

    def __init__(self, stream: TextIO, cases: Sequence[Case], results: Results) -> None:
        self._results = results
        self._goals = {(case.name, "lmdb"): case.raw_times for case in cases if case.raw_times}
        title = "the floor: storage and codec without SQL; ! takes more than the times in brackets"
        columns = [("work", 62), ("ms", 8), ("the engine, ms", 0), ("times the floor", 0)]
        self._table = LineTable(stream, title, columns)

    def line(self, floor: Floor) -> None:
        """Print the line of one cost."""
        timing = self._results.get(floor.engine_case, {}).get(floor.engine)
        whole = timing.seconds if timing else None
        self._table.line(
            [
                floor.name,
                f"{floor.seconds * 1000:.1f}",
                f"{whole * 1000:.1f}" if whole else "",
                self._times_text(floor, whole / floor.seconds) if whole else "",
            ]
        )

    def _times_text(self, floor: Floor, times: float) -> str:
        goal = self._goals.get((floor.engine_case, floor.engine))
        if goal is None:
            return f"{times:.1f}"
        mark = "! " if times > goal else ""
        return f"{mark}{times:.1f} ({goal:g})"


def print_comparisons(
    stream: TextIO, cases: Sequence[Case], engines: Sequence[Engine], results: Results
) -> None:
    """Print how many times as long each case takes as the plain one that it names."""
    by_name = {case.name: case for case in cases}
    compared = [case for case in cases if case.plain in by_name]
    if not compared:
        return
    table = Table(title="against the plain case", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case")
    table.add_column("plain case")
    table.add_column("at most", justify="right")
    for engine in engines:
        table.add_column(engine.title, justify="right")
    for case in compared:
        found = [times_plain(case, by_name[case.plain], results, engine.name) for engine in engines]
        table.add_row(
            case.name,
            case.plain,
            f"{case.at_most:g}",
            *(_times_text(times, case.at_most, engine) for times, engine in zip(found, engines, strict=True)),
        )
    _console(stream).print(table)


def times_plain(case: Case, plain: Case, results: Results, engine: str) -> float | None:
    """How many times as long one operation of a case takes as one of the plain case."""
    own, other = results[case.name].get(engine), results[plain.name].get(engine)
    if own is None or other is None or not own.seconds or not other.seconds:
        return None
    return (own.seconds / (case.operations or 1)) / (other.seconds / (plain.operations or 1))


def _times_text(times: float | None, at_most: float, engine: Engine) -> str:
    if times is None:
        return ""
    mark = "! " if times > at_most and engine.rival is not None else ""
    return f"{mark}{times:.4f}" if times < 0.1 else f"{mark}{times:.2f}"


def print_growth(stream: TextIO, title: str, growths: Sequence[Growth]) -> None:
    """Print times over the sizes, and the power of the number of rows that they follow."""
    table = Table(title=f"{title}, ms by rows", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case")
    for size in growths[0].sizes if growths else ():
        table.add_column(f"{size:,}", justify="right")
    table.add_column("exponent", justify="right")
    for growth in growths:
        table.add_row(
            growth.case, *(f"{seconds * 1000:.1f}" for seconds in growth.seconds), f"{growth.exponent:.2f}"
        )
    _console(stream).print(table)


def as_json(
    cases: Sequence[Case],
    engines: Sequence[Engine],
    results: Results,
    floors: Sequence[Floor],
    memory: Mapping[str, float] | None,
    growths: Sequence[Growth],
    rows: int,
) -> str:
    """All figures as JSON text: seconds, and ratios against ``sqlite3``."""
    by_name = {case.name: case for case in cases}
    document: dict[str, Any] = {
        "rows": rows,
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "machine": platform.machine(),
        "cases": {
            case.name: {
                "what": case.what,
                "operations": case.operations or 1,
                "seconds": {name: timing.seconds for name, timing in results[case.name].items()},
                "ratios": {
                    engine.name: ratio(results[case.name], engine.name, engine.rival)
                    for engine in engines
                    if engine.rival
                },
                "goals": dict(case.goals),
                "microseconds at most": case.microseconds or None,
                "times the raw cost at most": case.raw_times or None,
                "times plain": _all_times(case, by_name, engines, results),
            }
            for case in cases
        },
        "floor": {floor.name: floor.seconds for floor in floors},
        "streamed scan": dict(memory) if memory else None,
        "growth": {
            growth.case: {
                "seconds": dict(zip(growth.sizes, growth.seconds, strict=True)),
                "exponent": growth.exponent,
            }
            for growth in growths
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _all_times(
    case: Case, by_name: Mapping[str, Case], engines: Sequence[Engine], results: Results
) -> dict[str, float | None] | None:
    plain = by_name.get(case.plain)
    if plain is None:
        return None
    return {engine.name: times_plain(case, plain, results, engine.name) for engine in engines}


def as_chart(cases: Sequence[Case], engines: Sequence[Engine], results: Results, rows: int) -> str:
    """The ratios as an SVG bar chart."""
    ours = [engine for engine in engines if engine.rival]
    groups = [
        Bars(case.name, [ratio(results[case.name], engine.name, engine.rival) for engine in ours])
        for case in cases
    ]
    return bar_chart(
        f"Speed against sqlite3 from Python, {rows:,} rows (right of 1×: faster)",
        [engine.title for engine in ours],
        groups,
    )


def _console(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False, width=None if stream.isatty() else 160)


def _time_text(case: Case, engine: Engine, timing: Timing | None) -> str:
    if timing is None:
        return ""
    if timing.seconds is None:
        return "n/a"
    if case.operations:
        each = timing.seconds / case.operations * 1e6
        mark = "! " if 0 < case.microseconds < each and engine.rival is not None else ""
        return f"{mark}{each:.1f}"
    return f"{timing.seconds * 1000:.1f}"


def _ratio_text(case: Case, engine: Engine, timings: Mapping[str, Timing]) -> str:
    value = ratio(timings, engine.name, engine.rival)
    if value is None:
        return ""
    goal = case.goals.get(engine.name)
    if goal is None:
        return f"{value:.2f}"
    mark = "" if value >= goal else "! "
    return f"{mark}{value:.2f} ({goal:g})"
