"""The operator MATCH, which means the function ``match(pattern, value)`` of the program."""

from __future__ import annotations

import pytest

import quereus_store


def test_match_calls_the_function_of_the_program() -> None:
    con = quereus_store.connect()
    con.execute("create table t (id integer primary key, words text null)")
    con.execute("insert into t values (1, 'red fox'), (2, 'blue sky'), (3, null)")
    con.create_function("match", 2, lambda pattern, value: value is not None and pattern in value.split())
    assert con.execute("select id from t where words match 'fox'").fetchall() == [(1,)]
    assert con.execute("select id from t where words not match 'fox' order by id").fetchall() == [(2,), (3,)]
    assert con.execute("select match('sky', words) from t where id = 2").fetchone() in [(True,), (1,)]


def test_without_one_it_is_refused() -> None:
    con = quereus_store.connect()
    with pytest.raises(quereus_store.Error, match="unable to use function MATCH in the requested context"):
        con.execute("select 'a' match 'b'")
