"""Statements with many parts: what Python's compiler would refuse to nest is written differently."""

from __future__ import annotations

import pytest

import quereus_store


@pytest.fixture
def connection() -> quereus_store.Connection:
    opened = quereus_store.connect(":memory:")
    opened.execute("create table t (id integer primary key, v integer null)")
    opened.execute("insert into t values (1, 2), (2, 1), (3, null)")
    return opened


def joined(count: int, kind: str, condition: str) -> str:
    return " ".join(
        ["t a0", *(f"{kind} t a{i} on {condition.format(i=i, before=i - 1)}" for i in range(1, count))]
    )


@pytest.mark.parametrize("count", [17, 25, 60])
@pytest.mark.parametrize(
    ("kind", "condition", "expected"),
    [
        ("join", "a{i}.id = a{before}.id", [(None, 1), (1, 1), (2, 1)]),
        ("join", "a{i}.v = a{before}.id", [(1, 1), (2, 1)]),
        ("join", "a{i}.id >= a{before}.id and a{i}.id <= a{before}.id", [(None, 1), (1, 1), (2, 1)]),
        ("left join", "a{i}.v = a{before}.v and a{i}.id > a{before}.id", [(None, 1), (1, 1), (2, 1)]),
        ("full join", "a{i}.id = a{before}.id", [(None, 1), (1, 1), (2, 1)]),
    ],
)
def test_many_joins_under_a_grouping(
    connection: quereus_store.Connection,
    count: int,
    kind: str,
    condition: str,
    expected: list[tuple[int, int]],
) -> None:
    sql = f"select a0.v, count(*) from {joined(count, kind, condition)} group by a0.v order by 1"
    assert connection.execute(sql).fetchall() == expected


@pytest.mark.parametrize("count", [20, 21, 500])
def test_many_branches(connection: quereus_store.Connection, count: int) -> None:
    searched = " ".join(f"when id = {i} then v" for i in range(2, count))
    simple = " ".join(f"when {i} then {i}" for i in range(2, count))
    sql = f"select case {searched} end, case v {simple} else 0 end from t order by id"
    assert connection.execute(sql).fetchall() == [(None, 2), (1, 0), (None, 0)]


def test_branches_are_taken_one_at_a_time(connection: quereus_store.Connection) -> None:
    branches = " ".join(f"when id = {i} then date('no {i}')" for i in range(5, 50))
    assert connection.execute(f"select case {branches} else 'none' end from t").fetchall() == [("none",)] * 3
    with pytest.raises(quereus_store.Error, match="no 7"):
        connection.execute(
            f"select case {branches.replace('id = 7 ', 'id = 2 ')} else 'none' end from t"
        ).fetchall()


def test_many_alternatives(connection: quereus_store.Connection) -> None:
    operands = ", ".join(f"v + {i}" for i in range(400))
    assert connection.execute(f"select coalesce({operands}, id) from t order by id").fetchall() == [
        (2,),
        (1,),
        (3,),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        f"select {'(' * 5000}1{')' * 5000}",
        f"select {' + '.join(['v'] * 5000)} from t",
        f"select {'abs(' * 300}v{')' * 300} from t",
        f"select {'case when v = 1 then ' * 400}1{' end' * 400} from t",
        f"select {'not ' * 3000}v from t",
        f"update t set v = {' || '.join(['v'] * 5000)}",
    ],
)
def test_too_deep(connection: quereus_store.Connection, sql: str) -> None:
    with pytest.raises(quereus_store.Error, match=r"nested too deeply.* \(at line 1, column \d+\)"):
        connection.execute(sql)
