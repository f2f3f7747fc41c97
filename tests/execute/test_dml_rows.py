"""INSERT, UPDATE, DELETE: what is written, counted and returned."""

import pytest

from quereus_store.errors import IntegrityError
from tests.execute.database import Database

CREW = "create table crew (id integer primary key, nick text, rank integer null default 1)"


def crew(db: Database) -> Database:
    db.run(CREW)
    db.run("insert into crew values (1, 'Ann', 3), (2, 'Bo', null), (3, 'Cy', 1)")
    return db


def test_insert_counts_its_rows(db: Database) -> None:
    db.run(CREW)
    assert db.change("insert into crew values (1, 'Ann', 3)") == 1
    assert db.change("insert into crew (nick, id) values ('Bo', 2), ('Cy', 3)") == 2
    assert db.rows("select * from crew") == [(1, "Ann", 3), (2, "Bo", 1), (3, "Cy", 1)]


def test_insert_from_a_query(db: Database) -> None:
    crew(db)
    assert db.change("insert into crew select id + 10, nick || '2', rank from crew where id < 3") == 2
    assert db.rows("select id, nick from crew where id > 10") == [(11, "Ann2"), (12, "Bo2")]


def test_insert_default_values(db: Database) -> None:
    db.run("create table note (id integer primary key default 7, body text default 'x')")
    assert db.rows("insert into note default values returning *") == [(7, "x")]


def test_insert_takes_parameters_by_position_and_name(db: Database) -> None:
    db.run(CREW)
    db.change("insert into crew values (?, ?, ?)", 1, "Ann", None)
    db.session.execute("insert into crew values (:id, :nick, :rank)", {"nick": "Bo", "rank": 2, "id": 2})
    assert db.rows("select * from crew") == [(1, "Ann", None), (2, "Bo", 2)]


def test_many_rows_in_one_call(db: Database) -> None:
    db.run(CREW)
    assert db.many("insert into crew values (?, ?, ?)", [(i, f"n{i}", i % 3) for i in range(3000)]) == 3000
    assert db.rows("select count(*), sum(rank) from crew") == [(3000, 3000)]


def test_many_rows_are_one_statement(db: Database) -> None:
    db.run(CREW)
    rows = [(i, "x", 1) for i in (1, 2, 3, 2)]
    with pytest.raises(IntegrityError, match="UNIQUE constraint failed: crew PK"):
        db.many("insert into crew values (?, ?, ?)", rows)
    assert db.rows("select * from crew") == []


def test_update_sees_old_values(db: Database) -> None:
    db.run("create table swap (id integer primary key, a integer, b integer)")
    db.run("insert into swap values (1, 3, 8)")
    assert db.rows("update swap set a = b, b = a returning a, b") == [(8, 3)]


def test_update_by_key_counts_one(db: Database) -> None:
    crew(db)
    assert db.change("update crew set nick = ? where id = ?", "Dee", 2) == 1
    assert db.change("update crew set nick = ? where id = ?", "Dee", 9) == 0
    assert db.rows("select nick from crew") == [("Ann",), ("Dee",), ("Cy",)]


def test_update_moves_rows(db: Database) -> None:
    crew(db)
    assert db.change("update crew set id = id + 10") == 3
    assert db.rows("select id from crew") == [(11,), (12,), (13,)]


def test_key_shifts_depend_on_the_order_of_rows(db: Database) -> None:
    db.run("create table slot (n integer primary key); insert into slot values (1), (2)")
    assert "UNIQUE constraint failed" in db.fails("update slot set n = n + 1")
    db.change("update slot set n = n - 1")
    assert db.rows("select n from slot") == [(0,), (1,)]


def test_correlated_subqueries_see_the_state_before(db: Database) -> None:
    db.run("create table hw (id integer primary key, v integer); insert into hw values (1,1), (2,2), (3,3)")
    db.change("update hw set v = (select sum(o.v) from hw as o where o.id <= hw.id) * 10")
    assert db.rows("select v from hw") == [(10,), (30,), (60,)]


def test_update_from_takes_the_first_match(db: Database) -> None:
    crew(db)
    db.run("create table bonus (crew integer, n integer, primary key (crew, n))")
    db.run("insert into bonus values (1, 5), (1, 6), (3, 9)")
    assert db.change("update crew set rank = n from bonus where crew.id = bonus.crew") == 2
    assert db.rows("select id, rank from crew") == [(1, 5), (2, None), (3, 9)]


def test_delete_returns_what_was_there(db: Database) -> None:
    crew(db)
    assert db.rows("delete from crew where rank >= 1 returning id, nick") == [(1, "Ann"), (3, "Cy")]
    assert db.change("delete from crew") == 1
    assert db.rows("select * from crew") == []


def test_delete_using(db: Database) -> None:
    crew(db)
    db.run("create table gone (nick text primary key); insert into gone values ('Bo'), ('Cy')")
    assert db.change("delete from crew using gone where gone.nick = crew.nick") == 2
    assert db.rows("select nick from crew") == [("Ann",)]


def test_returning_has_old_and_new(db: Database) -> None:
    crew(db)
    found = db.rows("update crew set rank = coalesce(rank, 0) + 1 returning id, old.rank, new.rank, rank * 2")
    assert found == [(1, 3, 4, 8), (2, None, 1, 2), (3, 1, 2, 4)]


def test_returning_names(db: Database) -> None:
    crew(db)
    result = db.session.execute("update crew set rank = rank returning rank, rank, id as rank, OLD.id")
    assert [column.name for column in result.columns] == ["rank", "rank:1", "rank:2", "OLD.id"]


def test_returning_subqueries_see_the_write(db: Database) -> None:
    db.run("create table n (id integer primary key)")
    found = db.rows(
        "insert into n values (1), (2) returning id, (select count(*) from n o where o.id <= n.id)"
    )
    assert found == [(1, 1), (2, 2)]


def test_values_are_converted_before_anything_else(db: Database) -> None:
    db.run("create table t (id integer primary key, n integer, s text, d date, r real)")
    found = db.rows("insert into t values ('1', 2.9, 5, '20240131', 3) returning *")
    assert found == [(1, 2, "5", "2024-01-31", 3.0)]
    error = db.error("insert into t values (2, 'abc', 'x', '2024-01-01', 1)")
    assert error.code == 20
    assert error.message == "Type conversion failed for column 'n': Cannot convert 'abc' to INTEGER"


def test_defaults_read_raw_values_by_new(db: Database) -> None:
    db.run("create table raw (id integer primary key, t text, k text default (typeof(new.t)))")
    assert db.rows("insert into raw (id, t) values (1, 42) returning t, k") == [("42", "integer")]


def test_a_statement_reads_all_its_rows_before_it_writes(db: Database) -> None:
    crew(db)
    db.run("begin")
    for times in (1, 2):
        db.change(f"insert into crew select id + {10**times}, nick, rank from crew")
    db.run("commit")
    assert db.rows("select count(*) from crew") == [(12,)]


def test_the_error_of_the_first_row_is_reported(db: Database) -> None:
    db.run("create table t (id integer primary key, a text, b integer check (b > 0))")
    # Row one violates the CHECK; row two could not even be converted.
    message = db.fails("insert into t values (1, 'x', 0), (2, null, 'abc')")
    assert message == "CHECK constraint failed: _check_b (b > 0)"


def test_failed_statements_leave_nothing(db: Database) -> None:
    crew(db)
    db.run("begin")
    db.change("insert into crew values (4, 'Di', 1)")
    db.fails("insert into crew values (5, 'Ed', 1), (4, 'Di', 1)")
    db.fails("update crew set id = 1 where id > 2")
    db.run("commit")
    assert db.rows("select id from crew") == [(1,), (2,), (3,), (4,)]


def test_members_run_once_whatever_reads_them(db: Database) -> None:
    db.run("create table log (id integer primary key); create table copy (id integer primary key)")
    db.run("with w as (insert into log values (1), (2) returning id) insert into copy select id from w")
    assert db.rows("select * from copy") == [(1,), (2,)]
    assert db.rows("with w as (insert into log values (3) returning id) select 1 as one limit 0") == []
    assert db.rows("select count(*) from log") == [(3,)]


def test_members_read_the_common_tables_around_them(db: Database) -> None:
    db.run("create table log (id integer primary key); create table copy (id integer primary key)")
    found = db.rows(
        "with n as (select 7 as v union all select 8),"
        " w as (insert into log select v from n returning id)"
        " insert into copy select w.id + n.v from w join n on n.v = w.id returning *"
    )
    assert found == [(14,), (16,)]
    assert db.rows("select * from log") == [(7,), (8,)]


def test_the_query_sees_what_its_members_write(db: Database) -> None:
    db.run("create table log (id integer primary key)")
    assert db.rows("with w as (insert into log values (1), (2) returning id) select count(*) from log") == [
        (2,)
    ]
    found = db.rows("with w as (delete from log where id = 1 returning id) select w.id, log.id from w, log")
    assert found == [(1, 2)]


def test_a_member_that_is_never_evaluated_does_not_run(db: Database) -> None:
    db.run("create table log (id integer primary key)")
    db.rows("select case when false then (insert into log values (1) returning id) end")
    assert db.rows("select (insert into log values (2) returning id)") == [(2,)]
    assert db.rows("select * from (insert into log values (3) returning id) as x limit 0") == []
    assert db.rows("select * from log") == [(2,), (3,)]


def test_numbering_defaults_with_parameters(db: Database) -> None:
    db.run(
        "create table note (id integer primary key"
        " default (coalesce((select max(id) from note), 0) + mutation_ordinal()), body text)"
    )
    assert db.change("insert into note (body) values (?)", "a") == 1
    assert db.many("insert into note (body) values (?)", [("b",), ("c",)]) == 2
    assert db.change("insert into note (body) values (?), (?)", "d", "e") == 2
    assert db.rows("select * from note") == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
