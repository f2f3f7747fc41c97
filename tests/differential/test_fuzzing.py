"""Damaged statements give rows or an error of ours that says where, never a Python exception."""

from __future__ import annotations

import os

import pytest

import quereus_store
from quereus_store.errors import StatusCode
from tests.differential import fuzzing
from tests.differential.choices import Choices

LONG = os.environ.get("QUEREUS_LONG") == "1"


@pytest.mark.parametrize("name", [name for name, _ in fuzzing.scripts()])
def test_damaged_statements(name: str) -> None:
    for seed in range(20 if LONG else 1):
        problems = list(fuzzing.attempts(seed, name, mutants=2 if LONG else 1))
        assert not problems, problems[0][1]


def test_errors_in_queries_say_where() -> None:
    """A statement that cannot be planned is refused with a place in its text."""
    connection = quereus_store.connect(":memory:")
    connection.execute("create table t (id integer primary key, a integer null, s text null)")
    sources = [
        "select id, count(*) from t where a > 1 group by id having count(*) > 1 order by 2 limit 3",
        "select x.s || 'a', sum(x.a) over (partition by x.s order by x.id) from t x left join t y using (id)",
        "with c (k) as (select a from t union select 1) select (select max(k) from c) from c where k = 2",
        "insert into t (id, a) values (1, 2) on conflict (id) do update set a = excluded.a returning id",
        "update t set a = a + 1, s = upper(s) where exists (select 1 from t as u where u.id = t.a)",
    ]
    unlocated = {StatusCode.CONSTRAINT, StatusCode.MISMATCH, StatusCode.MISUSE}
    refused = 0
    for seed in range(2000 if LONG else 250):
        choices = Choices(seed)
        text = fuzzing.damaged(choices.one_of(sources), sources, choices)
        error = fuzzing.check_text(connection, text)
        connection.rollback()
        if error is not None and error.code not in unlocated:
            refused += 1
            assert error.line is not None, (str(error), text)
    assert refused > 50
    connection.close()
