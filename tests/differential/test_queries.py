"""Random queries: SQLite, every backend, with and without indexes and optimizer rules give the same rows.

The seeds are fixed; ``QUEREUS_LONG=1`` tries many more, ``python -m tests.differential.hunt`` looks for new
failures and makes them small.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.differential.choices import Choices
from tests.differential.comparing import (
    Difference,
    check_own_query,
    check_query,
    compare,
    compare_plans,
    normalized,
    run,
    sqlite_rows,
)
from tests.differential.correlated import Correlated
from tests.differential.extended import ExtendedQueries
from tests.differential.joining import Joining
from tests.differential.queries import Queries
from tests.differential.worlds import TABLES, VALUES, World, open_world

LONG = os.environ.get("QUEREUS_LONG") == "1"
WORLDS = 60 if LONG else 4
QUERIES = 100 if LONG else 30


@pytest.mark.parametrize("seed", range(WORLDS))
def test_against_sqlite(seed: int, tmp_path: Path) -> None:
    world = open_world(Choices(seed), tmp_path)
    compared = sum(
        check_query(world, Queries(Choices(1000 * seed + number)).query()) for number in range(QUERIES)
    )
    assert compared > QUERIES * 0.9
    world.close()


@pytest.mark.parametrize("seed", range(WORLDS))
def test_hundreds_against_sqlite_in_memory(seed: int) -> None:
    """Two thousand queries in all, a quarter of them without the optimizer's rules, too."""
    world = open_world(Choices(100 + seed), None)
    compared = 0
    for number in range(500):
        query = Queries(Choices(200_000 + 1000 * seed + number)).query()
        expected = sqlite_rows(world, query)
        if expected is None:
            continue
        compared += 1
        label = "memory, indexes" if number % 2 else "memory"
        compare(expected, run(world.connections[label], query.quereus, query.parameters, label), query, label)
        if number % 4 == 0:
            compare_plans(world, query, expected)
    assert compared > 450
    world.close()


@pytest.mark.parametrize("seed", range(WORLDS if LONG else 2))
def test_correlated_subqueries(seed: int) -> None:
    """EXISTS, IN and scalar subqueries that depend on the outer row, as joins and as they stand."""
    world = open_world(Choices(seed), None)
    for number in range(2 * QUERIES):
        choices = Choices(20_000 + 1000 * seed + number)
        check_query(world, Correlated(choices, TABLES, VALUES, {}, world.rows).query())
    world.close()


@pytest.mark.parametrize("seed", range(WORLDS if LONG else 2))
def test_joins_of_several_tables(seed: int) -> None:
    """Joins in any order give the same rows, columns in the order as written."""
    world = open_world(Choices(seed), None, counts=(0, 3, 9, 20))
    for number in range(2 * QUERIES):
        choices = Choices(30_000 + 1000 * seed + number)
        check_query(world, Joining(choices, TABLES, VALUES, {}, world.rows).query())
    world.close()


@pytest.mark.parametrize("seed", range(WORLDS if LONG else 2))
def test_what_sqlite_has_not(seed: int, tmp_path: Path) -> None:
    """Grouping sets, lateral joins, QUALIFY, match flags and more: the plainest plan against all others."""
    world = open_world(Choices(seed), tmp_path)
    for number in range(QUERIES):
        check_own_query(world, ExtendedQueries(Choices(9000 + 1000 * seed + number)).query())
    world.close()


@pytest.mark.parametrize("seed", range(WORLDS if LONG else 1))
def test_larger_tables(seed: int) -> None:
    """More rows than one batch."""
    world = open_world(Choices(seed), None, counts=(40, 1500), wide=True)
    for number in range(QUERIES):
        check_query(world, Queries(Choices(5000 + 1000 * seed + number), size=2).query())
    world.close()


@pytest.mark.parametrize("seed", range(WORLDS))
def test_partitions(seed: int) -> None:
    """The rows for which a predicate is true, false and unknown are together all rows."""
    world = open_world(Choices(seed), None)
    for number in range(QUERIES):
        check_partition(world, Choices(7000 + 1000 * seed + number))
    world.close()


def check_partition(world: World, choices: Choices) -> None:
    queries = Queries(choices)
    source = queries.source(1)
    parts = queries.parts(1, ("int", "text"), source, ())
    condition = queries._expressions(source.columns, (), 1).make("bool", 3).quereus
    items = ", ".join(item.quereus for item in parts.items)
    head = f"select {items} from {source.quereus}"
    pieces = [f"{head} where {test}" for test in (condition, f"not {condition}", f"({condition}) is null")]
    counted = f"select count(*) filter (where {condition}), sum(case when {condition} then 1 else 0 end)"
    types = ("int", "text")
    for label, connection in world.connections.items():
        answers = [
            Counter(normalized(run(connection, sql, dict(queries.parameters.values), label), types))
            for sql in (head, *pieces)
        ]
        if answers[0] != answers[1] + answers[2] + answers[3]:
            raise Difference(f"{label}: the parts are not the whole\n{head}\n{condition}")
        [(counts, added)] = run(
            connection, f"{counted} from {source.quereus}", dict(queries.parameters.values), label
        )
        if not counts == (added or 0) == answers[1].total():
            raise Difference(f"{label}: counted {counts} and {added}\n{head}\n{condition}")


def test_worlds_hold_something() -> None:
    """The generators make what the tests are to be about."""
    world = open_world(Choices(1), None, counts=(14,))
    assert all(len(world.rows[table.name]) > 3 for table in TABLES)
    texts = " ".join(Queries(Choices(seed)).query().quereus for seed in range(300))
    for word in (
        *(
            "left join",
            "full join",
            "right join",
            "cross join",
            "group by",
            "having",
            "distinct",
            "filter (where",
        ),
        *("with recursive", "union all", "intersect", "except", "order by", "nulls last", "limit", "offset"),
        *("exists (select", "in (select", "over (", "partition by", "between", "like", "coalesce", "case"),
    ):
        assert word in texts, word
    world.close()
