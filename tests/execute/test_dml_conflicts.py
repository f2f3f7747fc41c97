"""OR clauses, constraints with their own clause, ON CONFLICT."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.execute.database import Database


def pairs(db: Database) -> Database:
    db.run("create table t (id integer primary key, u text unique, n integer default 5 check (n < 100))")
    db.run("insert into t values (1, 'a', 1), (2, 'b', 2)")
    return db


# --- OR clauses -----------------------------------------------------------------------------------


def test_or_ignore_skips_rows(db: Database) -> None:
    pairs(db)
    found = db.rows(
        "insert or ignore into t values (1, 'x', 0), (3, 'a', 0), (4, null, 0), (5, 'e', 100), (6, 'f', 6)"
        " returning id"
    )
    assert found == [(6,)]
    assert db.rows("select id from t") == [(1,), (2,), (6,)]


def test_or_ignore_hides_no_conversion_failure(db: Database) -> None:
    pairs(db)
    assert db.error("insert or ignore into t values (3, 'c', 'abc')").code == 20


def test_or_replace_overwrites_and_evicts(db: Database) -> None:
    pairs(db)
    assert db.change("insert or replace into t values (1, 'b', 9)") == 1
    assert db.rows("select * from t") == [(1, "b", 9)]


def test_or_replace_substitutes_defaults(db: Database) -> None:
    pairs(db)
    assert db.rows("insert or replace into t values (1, 'a', null) returning n") == [(5,)]
    assert db.fails("insert or replace into t values (1, null, 1)") == "NOT NULL constraint failed: t.u"


def test_a_substituted_default_meets_the_checks(db: Database) -> None:
    db.run("create table rate (id integer primary key, v integer not null default 5 check (v > 100))")
    assert db.fails("insert or replace into rate values (1, null)") == (
        "CHECK constraint failed: _check_v (v > 100)"
    )


def test_or_fail_keeps_earlier_rows(db: Database) -> None:
    pairs(db)
    db.fails("insert or fail into t values (3, 'c', 3), (1, 'x', 0), (4, 'd', 4)")
    assert db.rows("select id from t") == [(1,), (2,), (3,)]
    db.run("begin")
    db.fails("insert or fail into t values (4, 'd', 4), (5, 'e', 100)")
    db.run("commit")
    assert db.rows("select id from t") == [(1,), (2,), (3,), (4,)]


def test_or_fail_keeps_nothing_that_the_commit_refuses(db: Database) -> None:
    pairs(db)
    db.run("create assertion few check ((select count(*) from t) < 3)")
    error = "UNIQUE constraint failed: t PK."
    assert db.fails("insert or fail into t values (3, 'c', 3), (1, 'x', 0)") == error
    assert db.rows("select id from t") == [(1,), (2,)]


def test_or_rollback_ends_the_transaction(db: Database) -> None:
    pairs(db)
    db.run("begin; insert into t values (3, 'c', 3)")
    assert db.fails("insert or rollback into t values (1, 'x', 0)") == "UNIQUE constraint failed: t PK."
    assert not db.in_transaction()
    assert db.rows("select id from t") == [(1,), (2,)]


def test_or_clauses_on_update(db: Database) -> None:
    pairs(db)
    assert db.change("update or ignore t set u = 'a'") == 1
    assert db.change("update or replace t set id = 2 where id = 1") == 1
    assert db.rows("select * from t") == [(2, "a", 1)]


# --- constraints' own clauses ---------------------------------------------------------------------


def test_an_eviction_outlives_a_later_ignore(db: Database) -> None:
    db.run(
        "create table dev (id integer primary key, mac text unique on conflict replace,"
        " port integer unique on conflict ignore)"
    )
    db.run("insert into dev values (1, 'm1', 80), (2, 'm2', 81)")
    assert db.change("insert into dev values (3, 'm1', 81)") == 0
    assert db.rows("select * from dev") == [(2, "m2", 81)]


def test_an_update_evicts_what_is_in_its_way(db: Database) -> None:
    db.run("create table t (id integer primary key on conflict replace, v text)")
    db.run("insert into t values (1, 'a'), (2, 'b'), (3, 'c')")
    # Row 2 is gone before its turn comes.
    assert db.rows("update t set id = id + 1 where id < 3 returning id, v") == [(2, "a")]
    assert db.rows("select * from t") == [(2, "a"), (3, "c")]


def test_a_rollback_clause_is_weaker_on_keys(db: Database) -> None:
    db.run(
        "create table hard (id integer primary key on conflict rollback,"
        " v integer check (v > 0) on conflict rollback)"
    )
    db.run("begin; insert into hard values (1, 1)")
    db.fails("insert into hard values (1, 2)")
    assert db.in_transaction()
    db.fails("insert into hard values (2, -1)")
    assert not db.in_transaction()
    assert db.rows("select * from hard") == []


def test_a_not_null_clause(db: Database) -> None:
    db.run(
        "create table t (id integer primary key, a text not null on conflict ignore,"
        " b text default 'z' not null on conflict replace)"
    )
    assert db.rows("insert into t values (1, null, 'x'), (2, 'a', null) returning *") == [(2, "a", "z")]


def test_or_ignore_keeps_every_check(db: Database) -> None:
    db.run("create table seat (id integer primary key, check ((select count(*) from seat) <= 1))")
    assert db.change("insert or ignore into seat values (1), (2)") == 1
    assert db.rows("select * from seat") == [(1,)]


# --- ON CONFLICT ----------------------------------------------------------------------------------


def test_do_nothing(db: Database) -> None:
    pairs(db)
    assert db.rows("insert into t values (1, 'x', 0), (3, 'c', 3) on conflict do nothing returning id") == [
        (3,)
    ]


def test_do_update_sees_both_rows(db: Database) -> None:
    pairs(db)
    found = db.rows(
        "insert into t values (1, 'x', 7), (3, 'c', 3)"
        " on conflict (id) do update set n = t.n + excluded.n, u = new.u returning *"
    )
    assert found == [(1, "x", 8), (3, "c", 3)]


def test_do_update_where(db: Database) -> None:
    pairs(db)
    clause = "on conflict (id) do update set n = new.n where t.n > 1"
    sql = f"insert into t values (?, 'x', 9) {clause} returning id, n"
    assert db.rows(sql, 1) == []
    assert db.rows(sql, 2) == [(2, 9)]


def test_clauses_are_tried_in_order(db: Database) -> None:
    pairs(db)
    clauses = "on conflict (u) do update set n = 50 on conflict (id) do nothing"
    assert db.rows(f"insert into t values (1, 'x', 0), (3, 'b', 0) {clauses} returning *") == [(2, "b", 50)]


def test_without_a_matching_clause_the_error_stands(db: Database) -> None:
    pairs(db)
    assert db.fails("insert into t values (1, 'x', 0) on conflict (u) do nothing") == (
        "UNIQUE constraint failed: t PK."
    )


def test_targets_match_by_value(db: Database) -> None:
    db.run("create table loose (id integer primary key, note text); insert into loose values (1, 'n')")
    db.run("insert into loose values (1, 'n') on conflict (note) do update set note = 'hit'")
    assert db.rows("select note from loose") == [("hit",)]
    assert db.fails("insert into loose values (1, 'z') on conflict (note) do nothing") == (
        "UNIQUE constraint failed: loose PK."
    )


def test_targets_compare_under_the_collation(db: Database) -> None:
    db.run("create table t (id integer primary key, u text collate nocase unique, n integer)")
    db.run("insert into t values (1, 'Ann', 1)")
    db.run("insert into t values (2, 'ANN', 5) on conflict (u) do update set n = excluded.n")
    assert db.rows("select * from t") == [(1, "Ann", 5)]


def test_the_proposed_row_is_checked_first(db: Database) -> None:
    pairs(db)
    upsert = "on conflict (id) do update set n = 5"
    assert db.fails(f"insert into t values (1, 'a', 100) {upsert}").startswith("CHECK constraint failed")


def test_a_later_row_may_update_an_earlier_one(db: Database) -> None:
    pairs(db)
    upsert = "on conflict (id) do update set n = t.n + excluded.n"
    assert db.change(f"insert into t values (7, 'g', 1), (7, 'h', 2), (7, 'i', 3) {upsert}") == 3
    assert db.rows("select * from t where id = 7") == [(7, "g", 6)]


def test_do_update_moves_keys_and_fails_like_an_update(db: Database) -> None:
    pairs(db)
    db.run("insert into t values (1, 'a', 0) on conflict (id) do update set id = 10")
    assert db.rows("select id from t") == [(2,), (10,)]
    assert "UNIQUE constraint failed" in db.fails(
        "insert into t values (2, 'b', 0) on conflict (id) do update set id = 10"
    )


def test_upserts_of_many_rows(db: Database) -> None:
    pairs(db)
    rows = [(i % 5, f"u{i % 5}", 1) for i in range(50)]
    count = db.many(
        "insert into t values (?, ?, ?) on conflict (id) do update set n = t.n + 1, u = new.u", rows
    )
    assert count == 50
    assert db.rows("select id, n from t") == [(0, 10), (1, 11), (2, 12), (3, 10), (4, 10)]


ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 9)), max_size=14)


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS, st.booleans())
def test_upserts_agree_with_a_dictionary(
    present: list[tuple[int, int, int]], rows: list[tuple[int, int, int]], as_batch: bool
) -> None:
    """``on conflict (id)`` as one would write it in Python."""
    db = Database()
    db.run("create table t (id integer primary key, a integer, n integer)")
    db.many("insert or replace into t values (?, ?, ?)", present)
    expected = {row[0]: row for row in present}
    for key, a, n in rows:
        old = expected.get(key)
        if old is None:
            expected[key] = (key, a, n)
        elif old[1] <= a:
            expected[key] = (key, a, old[2] + n)
    sql = (
        "insert into t values (?, ?, ?)"
        " on conflict (id) do update set a = excluded.a, n = t.n + excluded.n where t.a <= excluded.a"
    )
    if as_batch:
        db.many(sql, rows)
    else:
        for row in rows:
            db.change(sql, *row)
    assert db.rows("select * from t") == sorted(expected.values())


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_replace_and_ignore_agree_with_a_dictionary(
    present: list[tuple[int, int, int]], rows: list[tuple[int, int, int]]
) -> None:
    replaced: dict[int, tuple[int, int, int]] = {}
    for row in (*present, *rows):
        replaced = {key: old for key, old in replaced.items() if old[1] != row[1]} | {row[0]: row}
    kept: list[tuple[int, int, int]] = []
    for row in (*present, *rows):
        if not any(row[0] == old[0] or row[1] == old[1] for old in kept):
            kept.append(row)
    for verb, expected in (("replace", list(replaced.values())), ("ignore", kept)):
        db = Database()
        db.run("create table t (id integer primary key, u integer unique, n integer)")
        for batch in (present, rows):
            db.many(f"insert or {verb} into t values (?, ?, ?)", batch)
        assert db.rows("select * from t") == sorted(expected)
