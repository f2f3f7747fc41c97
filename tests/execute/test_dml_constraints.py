"""NOT NULL, PRIMARY KEY, UNIQUE, CHECK, generated columns: who is refused, and in which words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.execute.database import Database


def test_not_null_names_the_first_column(db: Database) -> None:
    db.run("create table t (id integer primary key, a text, b text)")
    error = db.error("insert into t values (1, null, null)")
    assert (error.code, error.message) == (19, "NOT NULL constraint failed: t.a")
    assert error.details["columns"] == ("a",)
    assert error.details["kind"] == "not null"


def test_update_checks_not_null(db: Database) -> None:
    db.run("create table t (id integer primary key, a text); insert into t values (1, 'x')")
    assert db.fails("update t set a = null") == "NOT NULL constraint failed: t.a"


def test_primary_key_is_told_with_its_values(db: Database) -> None:
    db.run("create table t (a integer, b text, primary key (b, a)); insert into t values (1, 'x')")
    error = db.error("insert into t values (1, 'x')")
    assert error.message == "UNIQUE constraint failed: t PK."
    assert error.details == {
        "schema": "main",
        "table": "t",
        "kind": "primary key",
        "columns": ("b", "a"),
        "constraint": None,
        "values": ("x", 1),
    }


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("memory", "UNIQUE constraint failed on new PK for t."),
        ("store", "UNIQUE constraint failed: t PK."),
    ],
)
def test_a_moved_key_that_is_taken(module: str, message: str) -> None:
    db = Database(module)
    db.run("create table t (id integer primary key); insert into t values (1), (2)")
    assert db.fails("update t set id = 2 where id = 1") == message


def test_unique_lists_its_columns(db: Database) -> None:
    db.run("create table t (id integer primary key, a text, b text null, constraint ab unique (a, b))")
    db.run("insert into t values (1, 'x', 'y'), (2, 'x', null), (3, 'x', null)")
    error = db.error("insert into t values (4, 'x', 'y')")
    assert error.message == "UNIQUE constraint failed: t (a, b)"
    assert (error.details["constraint"], error.details["values"]) == ("ab", ("x", "y"))
    assert db.fails("update t set b = 'y' where id = 2") == "UNIQUE constraint failed: t (a, b)"


def test_whole_rows_are_the_key_of_a_table_without_one(db: Database) -> None:
    db.run("create table bag (item text, qty integer)")
    assert db.fails("insert into bag values ('nut', 1), ('nut', 1)") == "UNIQUE constraint failed: bag PK."


def test_null_in_keys(db: Database) -> None:
    db.run("create table nulls (p integer null primary key, u integer null unique)")
    db.run("insert into nulls values (1, null), (2, null), (null, 7)")
    assert db.fails("insert into nulls values (null, 8)") == "UNIQUE constraint failed: nulls PK."


def test_the_empty_key_holds_one_row(db: Database) -> None:
    db.run("create table one (k text, v integer, primary key ()); insert into one values ('a', 1)")
    assert db.fails("insert into one values ('b', 2)") == "UNIQUE constraint failed: one PK."
    db.run("insert into one values ('b', 2) on conflict do update set v = excluded.v")
    assert db.rows("select * from one") == [("a", 2)]


def test_check_shows_short_expressions(db: Database) -> None:
    db.run("create table t (a integer, constraint positive check (a > 0), check (a <> 5))")
    assert db.fails("insert into t values (-1)") == "CHECK constraint failed: positive (a > 0)"
    assert db.fails("insert into t values (5)") == "CHECK constraint failed: _check_1 (a != 5)"


def test_check_passes_null(db: Database) -> None:
    db.run("create table t (a integer null check (a > 0))")
    assert db.change("insert into t values (null)") == 1


def test_checks_see_old_and_new(db: Database) -> None:
    db.run("create table ver (id integer primary key, n integer, check (n > old.n))")
    db.run("insert into ver values (1, 5)")
    assert db.fails("update ver set n = 5").startswith("CHECK constraint failed")
    assert db.change("update ver set n = 6") == 1


def test_check_on_delete_judges_the_old_row(db: Database) -> None:
    db.run("create table t (id integer primary key, locked boolean, check on delete (not locked))")
    db.run("insert into t values (1, false), (2, true)")
    assert db.change("delete from t where id = 1") == 1
    assert db.fails("delete from t").startswith("CHECK constraint failed")


def test_checks_that_read_tables_wait_for_the_commit(db: Database) -> None:
    db.run(
        "create table part (whole integer, share integer, primary key (whole, share),"
        " check ((select sum(p.share) from part p where p.whole = part.whole) <= 100))"
    )
    db.run("begin; insert into part values (1, 80), (1, 30); delete from part where share = 80; commit")
    assert db.rows("select * from part") == [(1, 30)]
    db.run("begin; insert into part values (1, 90)")
    assert db.fails("commit").startswith("CHECK constraint failed")
    assert db.rows("select * from part") == [(1, 30)]
    assert not db.in_transaction()


def test_rows_that_came_and_went_are_not_judged(db: Database) -> None:
    db.run("create table seat (id integer primary key, check ((select count(*) from seat) <= 1))")
    db.run("begin; insert into seat values (1), (2); delete from seat where id = 2; commit")
    assert db.rows("select * from seat") == [(1,)]


def test_rolled_back_rows_are_not_judged(db: Database) -> None:
    db.run("create table seat (id integer primary key, check ((select count(*) from seat) <= 1))")
    db.run(
        "begin; insert into seat values (1); savepoint s; insert into seat values (2); rollback to s; commit"
    )
    assert db.rows("select * from seat") == [(1,)]


def test_generated_columns_follow_their_sources(db: Database) -> None:
    db.run(
        "create table g (id integer primary key, c text generated always as (b || '!') stored,"
        " a integer, b integer generated always as (a * 2))"
    )
    assert db.rows("insert into g (id, a) values (1, '3') returning *") == [(1, "6!", 3, 6)]
    assert db.rows("update g set a = 10 returning b, c") == [(20, "20!")]
    db.run("insert into g (id, a) values (1, 5) on conflict (id) do update set a = excluded.a")
    assert db.rows("select * from g") == [(1, "10!", 5, 10)]


def test_generated_columns_may_be_unique(db: Database) -> None:
    db.run(
        "create table g (id integer primary key, a text,"
        " low text generated always as (lower(a)) stored unique)"
    )
    db.run("insert into g (id, a) values (1, 'Ann')")
    assert db.fails("insert into g (id, a) values (2, 'ANN')") == "UNIQUE constraint failed: g (low)"


def test_partial_indexes_check_rows_in_scope(db: Database) -> None:
    db.run("create table t (id integer primary key, mail text, gone boolean)")
    db.run("create unique index live on t (mail) where not gone")
    db.run("insert into t values (1, 'a', true), (2, 'a', false), (3, 'a', true)")
    assert db.fails("update t set gone = false where id = 1") == "UNIQUE constraint failed: t (mail)"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 3) | st.none(), st.integers(-1, 3) | st.none()),
        max_size=12,
    )
)
def test_a_batch_ends_like_its_rows_one_by_one(rows: list[tuple[int | None, ...]]) -> None:
    """Either all rows are stored, or the error is the one that the first bad row meets on its own."""
    table = "create table t (id integer primary key, u integer null unique, n integer check (n >= 0))"
    single, batch = Database(), Database()
    single.run(table)
    batch.run(table)
    message = None
    for row in rows:
        try:
            single.change("insert into t values (?, ?, ?)", *row)
        except Exception as error:
            message = str(error)
            break
    values = ", ".join(
        f"({i}, {'null' if u is None else u}, {'null' if n is None else n})" for i, u, n in rows
    )
    if message is not None:
        assert batch.fails(f"insert into t values {values}") == message
        assert batch.rows("select * from t") == []
    elif rows:
        batch.run(f"insert into t values {values}")
        assert batch.rows("select * from t") == single.rows("select * from t")
