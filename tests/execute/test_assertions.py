"""Assertions: judged by changed keys where that is enough, with the verdict of the whole query."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import Error
from quereus_store.execute.assertions import AssertionGuard, ChangedTables, WatchedConjunct
from quereus_store.execute.dml.changes import Change
from quereus_store.schema.objects import Operation, TableSchema
from tests.execute.database import Database

START = """
    create table item (id integer primary key, box integer null, size integer);
    create table box (id text primary key, room integer, name text null);
    create view big as select * from item where size > 7;
    insert into item values (1, 1, 3), (2, null, 5);
    insert into box values ('a', 1, 'x'), ('b', 2, null);
"""

CONDITIONS = (
    "not exists (select 1 from item where size < 0)",
    "not exists (select 1 from item i join box b on b.room = i.box where i.size > 5 and b.name = 'x')",
    "not exists (select 1 from item i left join box b on b.room = i.box where b.id is null and i.size > 6)",
    "not exists (select 1 from item i, item j where i.size = j.size and i.id < j.id and i.size > 4)",
    "not exists (select 1 from item i where size > 4 and not exists (select 1 from box where room = i.box))",
    "not exists (select 1 from box where name = 'y') and not exists (select 1 from item where size = 8)",
    "not exists (select 1 from big where box = 2)",
    "not exists (select count(*) from item where size = 2 having count(*) > 1)",
    "not exists (select box from item group by box having sum(size) > 12)",
    "not exists (select 1 from item where size = 1 limit 0)",
    "(select count(*) from item) < 6",
    "exists (select 1 from box where room = 1)",
)

size = st.integers(-1, 9)
key = st.integers(1, 6)
letter = st.sampled_from("abcd")
statement = st.one_of(
    st.builds("insert into item values ({}, {}, {})".format, key, st.integers(1, 3), size),
    st.builds("update item set size = {} where id = {}".format, size, key),
    st.builds("update item set id = {} where id = {}".format, key, key),
    st.builds("update item set size = size + 1 where box = {}".format, st.integers(1, 3)),
    st.builds("delete from item where id = {}".format, key),
    st.builds("insert into box values ('{}', {}, 'x')".format, letter, st.integers(1, 3)),
    st.builds("update box set name = '{}' where id = '{}'".format, st.sampled_from("xyz"), letter),
    st.builds("delete from box where id = '{}'".format, letter),
    st.sampled_from(("begin", "commit", "rollback", "alter table item alter column size set data type text")),
)


def answer(db: Database, sql: str) -> str:
    """What a statement came to, without the rows that an assertion's error samples."""
    try:
        db.session.execute(sql).all_rows()
    except Error as error:
        return f"{error.code.name}: {error.message.split(' [')[0]}"
    return ""


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3), st.lists(statement, max_size=12))
def test_changed_keys_decide_like_the_whole(conditions: list[str], statements: list[str]) -> None:
    keyed, whole = Database(), Database()
    for db in (keyed, whole):
        db.run(START)
        for number, condition in enumerate(conditions):
            db.run(f"create assertion a{number} check ({condition})")
    for sql in statements:
        whole.engine.assertions_held.clear()
        assert answer(keyed, sql) == answer(whole, sql), sql
        assert keyed.rows("select * from item") == whole.rows("select * from item"), sql


def parts_of(condition: str) -> tuple[Database, tuple[WatchedConjunct, ...]]:
    db = Database()
    db.run(START)
    db.run(f"create assertion a check ({condition})")
    db.session.begin()
    guard: AssertionGuard = db.session.assertions
    assert db.session.transaction is not None
    (watched,) = guard._assertions(db.session.transaction)
    return db, watched.parts


def test_what_can_be_judged_by_key() -> None:
    keyed = {condition: [sorted(part.keyed) for part in parts_of(condition)[1]] for condition in CONDITIONS}
    item, box = ("main", "item"), ("main", "box")
    assert [keyed[condition] for condition in CONDITIONS] == [
        [[item]],
        [[box, item]],
        [[item]],
        [[item]],
        [[item]],
        [[box], [item]],
        [[]],
        [[]],
        [[]],
        [[]],
        [[]],
        [[]],
    ]


def test_a_violation_names_the_key() -> None:
    db = Database()
    db.run(START)
    db.run("create assertion positive check (not exists (select 1 from item where size < 0))")
    db.run("insert into item values (3, 1, 1)")
    assert db.fails("insert into item values (4, 1, -1)") == "Integrity assertion failed: positive [(4)]"


def test_what_broke_before_is_found_by_the_whole() -> None:
    db = Database()
    db.run(START)
    db.run("create assertion small check (not exists (select 1 from item where size > 4))")
    assert "small [(1)]" in db.fails("insert into item values (3, 1, 1)")
    db.run("update item set size = 4 where size > 4")
    db.run("insert into item values (3, 1, 1)")


def changes(*writes: tuple[Operation, list[tuple[int, str]], list[tuple[int, str]]]) -> ChangedTables:
    return ChangedTables(Change(TABLE, operation, old, new) for operation, old, new in writes)


def _table() -> TableSchema:
    db = Database()
    db.run("create table t (id integer primary key, v text)")
    table = db.engine.pin()[0].table("main", "t")
    assert table is not None
    return table


TABLE = _table()


def test_net_changes() -> None:
    insert, update, delete = Operation.INSERT, Operation.UPDATE, Operation.DELETE
    came_and_went = changes((insert, [], [(1, "a")]), (delete, [(1, "a")], []))
    assert not came_and_went.includes(TABLE)
    there_and_back = changes((update, [(1, "a")], [(1, "b")]), (update, [(1, "b")], [(1, "a")]))
    assert not there_and_back.includes(TABLE)
    gone = changes((delete, [(1, "a")], []))
    assert gone.includes(TABLE)
    assert gone.keys(TABLE) == []
    places_changed = changes((update, [(1, "a"), (2, "b")], [(2, "a"), (1, "b")]))
    assert places_changed.keys(TABLE) == [(1,), (2,)]
    moved = changes((update, [(1, "a")], [(5, "a")]))
    assert moved.keys(TABLE) == [(5,)]
