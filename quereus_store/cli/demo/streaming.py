"""The last month of flights once more, row by row, under the dashboards.

The month is taken out, the dashboards are made, and the flights come back one statement each, a
transaction a day.  After every commit the dashboards are compared with their source; in the end
reading them is timed against running their bodies.
"""

from __future__ import annotations

import sys
import time
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from quereus_store.cli.demo.dashboards import DASHBOARDS, Dashboard

if TYPE_CHECKING:
    from rich.console import Console

    from quereus_store import Connection

_LAST_MONTH = "month = 12"
_DAY = itemgetter(3)
_READS = 20
_Flight = tuple[Any, ...]


def stream(connection: Connection, console: Console) -> bool:
    """Make the dashboards, stream the month in; whether every dashboard was right all the time."""
    month = connection.execute(
        f"select * from flights where {_LAST_MONTH} order by day, time_hour, id"
    ).fetchall()
    connection.execute(f"delete from flights where {_LAST_MONTH}")
    plain = _plain_cost(connection, month)
    started = time.perf_counter()
    for dashboard in DASHBOARDS:
        connection.execute(dashboard.create)
    console.print(
        f"[bold]{len(DASHBOARDS)} dashboards[/bold] as maintained tables, filled from "
        f"{connection.execute('select count(*) from flights').fetchone()[0]:,} flights in "
        f"{time.perf_counter() - started:.1f} s. December comes in now, row by row:"
    )
    fresh, seconds = _stream_days(connection, console, month)
    cost = seconds / len(month)
    console.print(
        f"{len(month):,} flights at {cost * 1e6:.0f} µs each, {plain * 1e6:.0f} µs of them for the flight "
        f"itself: keeping a dashboard costs {(cost - plain) / len(DASHBOARDS) * 1e6:.0f} µs a row.\n"
    )
    right = _compare_reads(connection)
    console.print()
    return fresh and right


def _insert(width: int) -> str:
    return f"insert into flights values ({', '.join('?' * width)})"


def _plain_cost(connection: Connection, month: list[_Flight]) -> float:
    """Seconds for one flight without dashboards; nothing of it stays."""
    insert, flights = _insert(len(month[0])), month[:1000]
    connection.execute("begin")
    started = time.perf_counter()
    for flight in flights:
        connection.execute(insert, flight)
    seconds = time.perf_counter() - started
    connection.execute("rollback")
    return seconds / len(flights)


def _stream_days(connection: Connection, console: Console, month: list[_Flight]) -> tuple[bool, float]:
    insert = _insert(len(month[0]))
    fresh, seconds = True, 0.0
    for day, group in groupby(month, key=_DAY):
        flights = list(group)
        started = time.perf_counter()
        with connection.transaction():
            for flight in flights:
                connection.execute(insert, flight)
        took = time.perf_counter() - started
        seconds += took
        behind = _rows_behind(connection, day)
        fresh = fresh and behind == 0
        busiest, count = connection.execute(
            "select dest, flights from top_airports order by flights desc limit 1"
        ).fetchone()
        late, carrier = connection.execute(
            "select minutes, carrier from per_day where month = 12 and day = ? "
            "order by minutes desc nulls last limit 1",
            (day,),
        ).fetchone()
        console.print(
            f"  December {day}: {len(flights)} flights in {took:.2f} s, dashboards {behind} rows behind; "
            f"busiest {busiest} ({count:,}), most minutes lost by {carrier} ({late:,})"
        )
    return fresh, seconds


def _rows_behind(connection: Connection, day: int) -> int:
    """How many flights of a day the dashboards do not know of yet."""
    connection.execute("pragma answer_from_views = false")
    there = connection.execute(
        "select count(*) from flights where month = 12 and day = ?", (day,)
    ).fetchone()[0]
    connection.execute("pragma answer_from_views = true")
    known = connection.execute(
        "select sum(flights) from per_day where month = 12 and day = ?", (day,)
    ).fetchone()[0]
    return int(there - (known or 0))


def _compare_reads(connection: Connection) -> bool:
    from quereus_store.cli.results import write_table

    lines, right = [], True
    for dashboard in DASHBOARDS:
        view, read = _timed(connection, f"select * from {dashboard.name}", _READS)
        connection.execute("pragma answer_from_views = false")
        body, run = _timed(connection, _flattened(dashboard), 1)
        connection.execute("pragma answer_from_views = true")
        same = sorted(map(repr, view)) == sorted(map(repr, body))
        right = right and same
        lines.append(
            (
                dashboard.name,
                dashboard.title,
                len(view),
                f"{read * 1000:.2f} ms",
                f"{run * 1000:.2f} ms",
                f"{run / read:,.0f}",
                "equal" if same else "DIFFERENT",
            )
        )
    names = ("dashboard", "shows", "rows", "read", "body run anew", "times", "rows are")
    write_table(sys.stdout, names, lines, 0)
    return right


def _flattened(dashboard: Dashboard) -> str:
    """A body down to the flights: views below it in the place of their names."""
    body = dashboard.body
    for other in DASHBOARDS:
        body = body.replace(f"from {other.name} ", f"from (\n{other.body}\n) {other.name} ")
    return body


def _timed(connection: Connection, sql: str, times: int) -> tuple[list[_Flight], float]:
    """Rows of a query and the seconds it takes."""
    rows: list[_Flight] = []
    started = time.perf_counter()
    for _ in range(times):
        rows = connection.execute(sql).fetchall()
    return rows, (time.perf_counter() - started) / times
