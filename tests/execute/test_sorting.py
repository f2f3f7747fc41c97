"""Sorts by computed keys, and sorts whose last term the rows fulfil already, against sorts by all terms.

With a memory limit rows are sorted by passes over all columns that terms need, with keys made row by row, and
without rules no term is left out; so both have nothing in common with the way that is tested here.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store

TERMS = (
    "lower(word)",
    "word collate nocase",
    "word collate rtrim",
    "word || 'x'",
    "number * 2",
    "number + number",
    "-id % 3",
    "anything",
    "case when id % 2 = 0 then number else word end",
    "coalesce(word, number)",
)
words = st.none() | st.sampled_from(["", "a", "A", "b", "B ", "b", "ß", "é", "\U0001f600", "\uffff"])
numbers = st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.0, float("inf"), float("-inf"), float("nan")])
values = st.none() | st.integers(-2, 2) | st.sampled_from([1.5, "a", "A", b"a", True])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(words, numbers, values), max_size=12),
    term=st.sampled_from(TERMS),
    direction=st.sampled_from(["", " desc", " nulls last", " desc nulls first"]),
    last=st.sampled_from(["", ", id", ", id desc", ", word"]),
)
def test_rows_come_in_the_order_of_all_terms(
    rows: list[tuple[Any, ...]], term: str, direction: str, last: str
) -> None:
    with quereus_store.connect(":memory:") as connection:
        connection.execute(
            "create table t (id integer primary key, word text null, number real null, anything any null)"
        )
        connection.executemany(
            "insert into t values (?, ?, ?, ?)", [(number, *row) for number, row in enumerate(rows)]
        )
        query = f"select * from t where id <> 3 order by {term}{direction}{last}"
        found = connection.execute(query).fetchall()
        connection.execute("pragma disabled_rules = 'all'")
        connection.execute("pragma memory_limit = '1GB'")
        assert list(map(repr, found)) == list(map(repr, connection.execute(query).fetchall()))


@pytest.mark.parametrize(
    ("order", "terms"),
    [
        ("upper(word), id", "upper(word)"),
        ("upper(word), id desc", "upper(word), id desc"),
        ("upper(word), id nulls last", "upper(word), id nulls last"),
        ("number, word", "number, word"),
        ("number, twice", "number, twice"),
    ],
)
def test_only_a_last_term_that_the_rows_come_in_anyway_is_left_out(order: str, terms: str) -> None:
    with quereus_store.connect(":memory:") as connection:
        connection.execute("create table t (id integer primary key, word text, number real)")
        plan = connection.execute(f"explain select *, number * 2 as twice from t order by {order}").fetchall()
        assert plan[0] == (f"SORT {terms}",)
