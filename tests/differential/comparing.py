"""Running one query in every system of a world and comparing the answers."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import quereus_store
from quereus_store.plan.optimizer import rule_names
from tests.differential.query_parts import Query
from tests.differential.worlds import World

_STEPS = 150
"""How many times ten thousand steps SQLite may take."""

Rows = list[tuple[Any, ...]]


class Difference(AssertionError):
    """Two ways of asking gave different answers."""


SPANS = {"PT60M": 3600, "PT1H": 3600, "P1D": 86400, "PT24H": 86400, "PT0S": 0, "-PT1H": -3600}
SPANS |= {"P1M": 2678400, "P31D": 2678400, "PT1S": 1}
"""Durations that the tests use, in seconds: many spellings are equal."""


def normalized(rows: Rows, types: Sequence[str]) -> Rows:
    """Rows in which equal values are the same: reals rounded, texts that ignore case lowered."""
    makers: list[Callable[[Any], Any]] = [_NORMAL.get(kind, _plain) for kind in types]
    return [tuple([make(value) for make, value in zip(makers, row, strict=True)]) for row in rows]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else _real(value) if isinstance(value, float) else value


def _real(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else float(f"{float(value):.9g}") + 0.0


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else _anything(value)


def _document(value: Any) -> Any:
    """A document as a text that is the same for equal documents."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list):
        value = [_document(item) for item in value]
    if isinstance(value, dict):
        value = {name: _document(item) for name, item in sorted(value.items())}
    return f"json {json.dumps(value)}"


def _anything(value: Any) -> Any:
    if isinstance(value, list | dict):
        return _document(value)
    return int(value) if isinstance(value, bool) else value


_NORMAL: dict[str, Callable[[Any], Any]] = {
    "nocase": _lower,
    "real": _real,
    "json": _document,
    "any": _anything,
    "rtrim": lambda value: value.rstrip(" ") if isinstance(value, str) else _anything(value),
    "timespan": lambda value: SPANS.get(value, value) if isinstance(value, str) else _anything(value),
}


def compare(expected: Rows, actual: Rows, query: Query, label: str) -> None:
    """Raise a :class:`Difference` unless the rows are the same and in the order that is promised."""
    wanted, got = normalized(expected, query.types), normalized(actual, query.types)
    if Counter(wanted) != Counter(got):
        missing, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
        counts = f"missing {_some(missing)}, extra {_some(extra)}"
        raise Difference(f"{label}: {counts}\n{query.quereus}\n{query.sqlite}\n{query.parameters}")
    if query.ordered:
        orders = [[tuple(row[index] for index in query.ordered) for row in rows] for rows in (wanted, got)]
        if orders[0] != orders[1]:
            order = f"order {orders[1][:20]} instead of {orders[0][:20]}"
            raise Difference(f"{label}: {order}\n{query.quereus}\n{query.parameters}")


def _some(counted: Counter[tuple[Any, ...]]) -> str:
    rows = ", ".join(f"{row}: {count}" for row, count in counted.most_common(20))
    return "{" + rows + ("}" if len(counted) <= 20 else ", ...}")


def run(connection: quereus_store.Connection, sql: str, parameters: dict[str, object], label: str) -> Rows:
    """All rows of a query; any exception is a difference."""
    started = time.perf_counter()
    try:
        rows = connection.execute(sql, parameters).fetchall()
        if time.perf_counter() - started > 5:
            print("SLOW", label, time.perf_counter() - started, sql, parameters)
        return rows
    except Exception as error:
        raise Difference(f"{label}: {type(error).__name__}: {error}\n{sql}\n{parameters}") from error


def sqlite_rows(world: World, query: Query) -> Rows | None:
    """SQLite's answer, None where SQLite itself refuses the query or takes too many steps."""
    steps = iter(range(_STEPS))
    world.sqlite.set_progress_handler(lambda: next(steps, -1) < 0, 10_000)
    try:
        return world.sqlite.execute(query.sqlite, query.parameters).fetchall()
    except sqlite3.Error:
        return None


def check_query(world: World, query: Query) -> bool:
    """Compare all systems; False when SQLite has no answer to compare with."""
    expected = sqlite_rows(world, query)
    if expected is None:
        return False
    for label, connection in world.connections.items():
        compare(expected, run(connection, query.quereus, query.parameters, label), query, label)
    compare_plans(world, query, expected)
    return True


def compare_plans(world: World, query: Query, expected: Rows) -> None:
    """Compare with what comes of no optimizer rules, and of some of them."""
    connection = world.connections["memory, indexes"]
    some = random.Random(query.quereus)
    for disabled in (sorted(rule_names()), [rule for rule in sorted(rule_names()) if some.random() < 0.4]):
        names = ", ".join(disabled)
        connection.execute(f"pragma disabled_rules = '{names}'")
        try:
            rows = run(connection, query.quereus, query.parameters, f"without {names}")
            compare(expected, rows, query, f"without {names}")
        finally:
            connection.execute("pragma disabled_rules = ''")


def check_own_query(world: World, query: Query) -> None:
    """Compare Quereus with itself: the plain plan on plain tables against all others."""
    plain = world.connections["memory"]
    plain.execute("pragma disabled_rules = 'all'")
    try:
        expected = run(plain, query.quereus, query.parameters, "memory without rules")
    finally:
        plain.execute("pragma disabled_rules = ''")
    for label, connection in world.connections.items():
        compare(expected, run(connection, query.quereus, query.parameters, label), query, label)
    compare_plans(world, query, expected)
