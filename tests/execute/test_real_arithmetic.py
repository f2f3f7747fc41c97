"""Real arithmetic is written out as Python's operators: what overflows is NULL wherever it stands.

Each tree of operators is evaluated here node by node with the functions of the types layer, and by the
engine as a value, under comparisons, in IS NULL and within aggregates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.functions.aggregates.exact import sum_of
from quereus_store.types.arithmetic import BY_VALUE
from quereus_store.types.comparison import equal, greater, greater_equal, less, less_equal, not_equal

REALS = (0.0, -0.0, 1.5, -2.5, 1e200, -1e200, 5e-324, 1e308)
INTEGERS = (0, 1, -3, 2**53 + 1, 2**63, -(2**64), 10**400, -(10**309))
NULLABLE = (*REALS, None, math.inf, -math.inf, math.nan)
ROWS = [
    (number, REALS[number % 8], INTEGERS[number // 8 % 8], NULLABLE[number * 5 % 12]) for number in range(64)
]
COLUMNS = ("r", "i", "n")
LITERALS = ("0", "1", "-7", "2.0", "0.25", "1e300", "9007199254740993")

Tree = str | tuple[str, Any, Any]

trees: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from(COLUMNS + LITERALS),
    lambda below: st.tuples(st.sampled_from("+-*/"), below, below),
    max_leaves=6,
)


def text(tree: Tree) -> str:
    """The tree as SQL."""
    return tree if isinstance(tree, str) else f"({text(tree[1])} {tree[0]} {text(tree[2])})"


def value(tree: Tree, row: tuple[Any, ...]) -> Any:
    """The tree's value, one operator after the other."""
    if isinstance(tree, str):
        if tree in COLUMNS:
            return row[1 + COLUMNS.index(tree)]
        return float(tree) if "." in tree or "e" in tree else int(tree)
    return BY_VALUE[tree[0]](value(tree[1], row), value(tree[2], row))


@pytest.fixture(scope="module")
def con() -> Iterator[quereus_store.Connection]:
    """A table of reals and integers of all sizes."""
    with quereus_store.connect(":memory:") as opened:
        opened.execute("create table t (id integer primary key, r real, i integer, n real null)")
        opened.executemany("insert into t values (?, ?, ?, ?)", ROWS)
        yield opened


def same(found: Any, expected: Any) -> bool:
    """Equal, of one type, zeros of one sign."""
    return type(found) is type(expected) and str(found) == str(expected)


def in_order(number: float) -> tuple[bool, float]:
    """NaN above all."""
    return (True, 0.0) if number != number else (False, number)


@settings(max_examples=150)
@given(trees)
def test_a_tree_has_the_value_of_its_operators(con: quereus_store.Connection, tree: Tree) -> None:
    expected = [value(tree, row) for row in ROWS]
    found = con.execute(f"select {text(tree)}, {text(tree)} is null from t order by id").fetchall()
    assert all(same(row[0], it) and row[1] == (it is None) for row, it in zip(found, expected, strict=True))


@settings(max_examples=150)
@given(trees, trees, st.sampled_from(("<", "<=", ">", ">=", "=", "<>")))
def test_what_overflowed_meets_no_comparison(
    con: quereus_store.Connection, left: Tree, right: Tree, operator: str
) -> None:
    holds = {
        "<": less,
        "<=": less_equal,
        ">": greater,
        ">=": greater_equal,
        "=": equal,
        "<>": not_equal,
    }[operator]
    pairs = [(row[0], value(left, row), value(right, row)) for row in ROWS]
    known = [(number, a, b) for number, a, b in pairs if a is not None and b is not None]
    for negation in ("", "not "):
        sql = f"select id from t where {negation}({text(left)} {operator} {text(right)}) order by id"
        expected = [number for number, a, b in known if holds(a, b) is not bool(negation)]
        assert [row[0] for row in con.execute(sql)] == expected, sql


@settings(max_examples=100)
@given(trees)
def test_aggregates_leave_out_what_overflowed(con: quereus_store.Connection, tree: Tree) -> None:
    con.execute("pragma answer_from_views = off")
    for grouping, key in (("", lambda row: 0), (" group by id % 3 order by id % 3", lambda row: row[0] % 3)):
        calls = "count({0}), sum({0}), avg({0}), min({0}), max({0})".format(text(tree))
        found = con.execute(f"select {calls} from t{grouping}").fetchall()
        for group in sorted(set(map(key, ROWS))):
            kept = [it for row in ROWS if key(row) == group and (it := value(tree, row)) is not None]
            count, total, mean, least, greatest = found[group]
            assert count == len(kept)
            if kept:
                assert same(total, sum_of(kept))
                assert in_order(least) == in_order(min(kept, key=in_order))
                assert in_order(greatest) == in_order(max(kept, key=in_order))
                if type(total) is float and math.isfinite(total):
                    assert math.isclose(mean, total / count)
            else:
                assert total is mean is least is greatest is None


def test_functions_of_the_program_give_the_reals_that_they_declare(con: quereus_store.Connection) -> None:
    def whole(number: float) -> float:
        return int(number)

    con.create_function("whole", 1, whole)
    sql = "select sum(whole(id)), typeof(sum(whole(id))), avg(whole(id)) from t"
    (total, kind, mean) = con.execute(sql).fetchone()
    assert (total, kind, mean) == (2016.0, "real", 31.5)
