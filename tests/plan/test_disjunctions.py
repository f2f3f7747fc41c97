"""What the branches of an OR share joins tables; what they imply for one table keeps rows out of the join."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store


@pytest.fixture(scope="module")
def con() -> Iterator[quereus_store.Connection]:
    with quereus_store.connect(":memory:") as opened:
        opened.execute("create table a (id integer primary key, x integer null, s text)")
        opened.execute("create table b (id integer primary key, y integer null, a_id integer null)")
        opened.executemany(
            "insert into a values (?, ?, ?)",
            [(i, None if i % 7 == 0 else i % 5, f"s{i % 3}") for i in range(40)],
        )
        opened.executemany(
            "insert into b values (?, ?, ?)", [(i, i % 4, None if i % 6 == 0 else i % 45) for i in range(60)]
        )
        yield opened


def plan(con: quereus_store.Connection, sql: str) -> list[str]:
    return [line.strip() for (line,) in con.execute(f"explain {sql}")]


def test_a_shared_equality_joins(con: quereus_store.Connection) -> None:
    sql = "select count(*) from a, b where (a.id = b.a_id and a.x = 1) or (b.a_id = a.id and b.y = 2)"
    assert any("JOIN inner on" in line for line in plan(con, sql))


def test_a_branch_that_says_no_more_takes_the_others_in(con: quereus_store.Connection) -> None:
    found = plan(con, "select count(*) from a where a.s = 's1' or (a.s = 's1' and a.x = 2)")
    assert "FILTER s = 's1'" in found


def test_each_table_is_told_what_follows_for_it(con: quereus_store.Connection) -> None:
    sql = (
        "select count(*) from a join b on a.id = b.a_id"
        " where (a.s = 's1' and b.y = 2) or (a.s = 's2' and b.y = 3)"
    )
    found = plan(con, sql)
    assert "FILTER (s = 's1') or (s = 's2')" in found
    assert "FILTER (y = 2) or (y = 3)" in found


def test_an_or_is_told_from_what_stands_beside_it(con: quereus_store.Connection) -> None:
    joined = "select count(*) from a join b on a.id = b.a_id and (a.x = 1 or b.y = 2)"
    sql = joined + " where a.s > 's0' and (a.x = 2 or a.x = 3)"
    found = "".join(plan(con, sql))
    assert " and ((x = 1) or (y = 2))" in found
    assert "s > 's0' and ((x = 2) or (x = 3))" in found


def test_a_random_condition_is_asked_as_often_as_it_stands(con: quereus_store.Connection) -> None:
    found = plan(con, "select count(*) from a where (random() > 0 and x = 1) or (random() > 0 and x = 2)")
    assert any(line.count("random()") == 2 for line in found)


def test_what_a_branch_guards_is_not_asked_without_its_guard(con: quereus_store.Connection) -> None:
    def number_of(text: str) -> int:
        return int(text.removeprefix("s1"))

    con.create_function("number_of", 1, number_of, deterministic=True)
    alone = (
        "select count(*) from a"
        " where (s = 's1' and number_of(s || '7') > 4) or (s = 's1x' and number_of(s || '7') > 4)"
    )
    assert con.execute(alone).fetchone() == (13,)
    joined = (
        "select count(*) from a cross join (select 1 as one union all select 2) c"
        " where (c.one = 1 and a.s = 's1' and number_of(a.s || '7') = 7)"
        " or (c.one = 3 and a.s = 's1x' and number_of(a.s || '7') = 8)"
    )
    assert con.execute(joined).fetchone() == (13,)


@pytest.mark.parametrize(
    "fails",
    [
        "integer(t.s) > 4",
        "t.s like 'a' escape t.s",
        "t.s regexp t.p",
        "like('a', 'b', t.s)",
        "t.v + 'P1D' > '2024'",
        "(select u.id from t u where u.s <= t.s) > 0",
    ],
)
@pytest.mark.parametrize(
    "condition",
    [
        "a.id = t.id and a.x = 1 and {} or a.id = t.id and a.x = 1 and t.id = 3",
        "a.id = t.id and a.x = 1 and {} or a.id = t.id and a.id = 1 and {}",
        "a.x = 1 and a.id = t.id and (a.x = 1 and {} or t.id = 1) or a.x = 1 and a.id = t.id",
    ],
)
def test_a_guard_that_branches_share_still_guards(
    con: quereus_store.Connection, condition: str, fails: str
) -> None:
    """Also where it is taken out of the OR and pushed to another table."""
    con.execute("create table if not exists t (id integer primary key, s text, p text, v any)")
    rows = [(1, "1", "1", "2024-01-01"), (2, "xx", "(", 1), (3, "yy", "[", 2)]
    con.executemany("insert or replace into t values (?, ?, ?, ?)", rows)
    with pytest.raises(quereus_store.Error):
        con.execute(f"select count(*) from t where {fails}").fetchall()
    test = condition.replace("{}", fails)
    for tables in ("a, t where", "a join t on", "a left join t on", "t right join a on"):
        sql = f"select count(t.id) from {tables} {test}"
        found = con.execute(sql).fetchall()
        con.execute("pragma disabled_rules = 'all'")
        try:
            assert con.execute(sql).fetchall() == found
        finally:
            con.execute("pragma disabled_rules = ''")


atoms = st.sampled_from(
    (
        "a.id = b.a_id",
        "b.a_id = a.id",
        "a.x = 1",
        "a.x > 2",
        "2 < a.x",
        "b.y = 2",
        "b.y is null",
        "a.s between 's1' and 's2'",
        "a.x + b.y = 4",
        "a.x in (1, null)",
        "not a.x = b.y",
        "null",
    )
)
branches = st.lists(atoms, min_size=1, max_size=4).map(lambda parts: "(" + " and ".join(parts) + ")")
disjunctions = st.lists(branches, min_size=2, max_size=4).map(lambda parts: "(" + " or ".join(parts) + ")")


@settings(max_examples=150)
@given(
    disjunctions,
    st.sampled_from(("a, b", "a left join b on a.id = b.id", "a full join b on a.id = b.a_id")),
    st.sampled_from(("", "not ")),
)
def test_rows_are_the_same_as_without_rules(
    con: quereus_store.Connection, condition: str, tables: str, negation: str
) -> None:
    where = f"select a.id, b.id from {tables} where {negation}{condition} order by 1, 2"
    on = f"select a.id, b.id from a left join b on {condition} order by 1, 2"
    for sql in (where, on):
        rows = con.execute(sql).fetchall()
        con.execute("pragma disabled_rules = 'all'")
        try:
            assert rows == con.execute(sql).fetchall(), sql
        finally:
            con.execute("pragma disabled_rules = ''")
