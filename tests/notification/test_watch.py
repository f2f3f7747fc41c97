"""Watching a query: one call after each commit that may change its result."""

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store import Connection
from quereus_store.errors import Error
from quereus_store.events import ChangeScope, Groups, Notification, Rows, RowsByGroup, Watch
from tests.notification.conftest import another


def hits(found: list[Notification]) -> list[list[tuple[Any, ...]]]:
    """The hits of each notification's first match; empties the list."""
    shown = [list(notification.matched[0].hits) for notification in found]
    found.clear()
    return shown


def watching(con: Connection, what: Any, parameters: Any = None) -> list[Notification]:
    found: list[Notification] = []
    con.database.watch(what, found.append, parameters=parameters)
    return found


def on(scope: Any, table: str = "tank") -> ChangeScope:
    return ChangeScope.of([Watch("main", table, scope=scope)])


def test_a_row_is_watched_by_its_key(con: Connection) -> None:
    found = watching(con, "select * from tank where id = ?", [1])
    con.execute("insert into tank values (1, 'north', 1), (2, 'south', 1)")
    assert hits(found) == [[(1,)]]
    con.execute("update tank set litres = 5 where id = 2")
    assert found == []
    con.execute("update tank set id = 9 where id = 1")
    assert hits(found) == [[(1,)]]


def test_a_key_is_compared_as_the_table_compares_it(con: Connection) -> None:
    con.execute("create table fruit (name text collate nocase primary key, n integer)")
    found = watching(con, "select n from fruit where name = 'FIG'")
    con.execute("insert into fruit values ('fig', 1)")
    assert hits(found) == [[("FIG",)]]


def test_a_full_watch_has_no_hits_and_heeds_no_columns(con: Connection) -> None:
    con.execute("insert into tank values (1, 'north', 1)")
    found = watching(con, "select name from tank")
    con.execute("update tank set litres = 7")
    assert hits(found) == [[]]


def test_groups_give_old_and_new_keys(con: Connection) -> None:
    con.execute("insert into tank values (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    found = watching(con, on(Groups(("name",))))
    con.execute("update tank set name = 'z' where id = 2")
    assert sorted(hits(found)[0]) == [("b",), ("z",)]
    some = watching(con, on(RowsByGroup(("name",), (("a",), ("q",)))))
    con.execute("update tank set name = 'q' where id = 3")
    assert hits(some) == [[("q",)]]


def test_what_comes_and_goes_in_a_transaction_is_nothing(con: Connection) -> None:
    found = watching(con, "select * from tank")
    with con.transaction():
        con.execute("insert into tank values (1, 'brief', 1)")
        con.execute("delete from tank")
    assert found == []
    con.executescript("begin; insert into tank values (1, 'undone', 1); rollback;")
    assert found == []


def test_what_goes_and_comes_again_is_a_change_and_so_are_equal_values(con: Connection) -> None:
    con.execute("insert into tank values (1, 'north', 1)")
    found = watching(con, "select * from tank where id = 1")
    with con.transaction():
        con.execute("delete from tank")
        con.execute("insert into tank values (1, 'north', 1)")
    assert hits(found) == [[(1,)]]
    con.execute("update tank set litres = litres")
    assert hits(found) == [[(1,)]]


def test_one_call_for_a_commit_with_all_its_tables(con: Connection) -> None:
    con.execute("create table valve (id integer primary key, tank integer)")
    found = watching(con, "select * from tank t join valve v on v.tank = t.id")
    with con.transaction():
        con.execute("insert into tank values (1, 'north', 1)")
        con.execute("insert into tank values (2, 'south', 1)")
        con.execute("insert into valve values (1, 1)")
    (notification,) = found
    assert [match.watch.table for match in notification.matched] == ["tank", "valve"]
    assert notification.txn_id.startswith("txn:")


def test_maintained_tables_are_watched_through_their_sources_or_themselves(con: Connection) -> None:
    con.execute(
        "create materialized view total as select name, sum(litres) as litres from tank group by name"
    )
    con.execute("create materialized view top as select litres, name from total where litres > 5")
    by_source = watching(con, "select * from top")
    assert by_source == []
    itself = watching(con, on(Rows(("name",), (("north",),)), "total"))
    con.execute("insert into tank values (1, 'south', 1)")
    assert (len(by_source), itself) == (1, [])
    con.execute("insert into tank values (2, 'north', 9)")
    assert hits(itself) == [[("north",)]]
    (watch,) = con.database.change_scope("select * from top").watches
    assert watch.table == "total"


def test_changes_are_told_after_they_can_be_seen_by_others(con: Connection) -> None:
    other = another(con)
    seen: list[Any] = []
    con.database.watch(
        "select count(*) from tank",
        lambda _: seen.append(other.execute("select count(*) from tank").fetchone()),
    )
    with con.transaction():
        con.execute("insert into tank values (1, 'north', 1)")
        assert seen == []
    assert seen == [(1,)]


def test_a_transaction_older_than_the_watch_counts_as_touching_it(con: Connection) -> None:
    con.begin()
    con.execute("insert into tank values (1, 'unnoticed', 1)")
    found = watching(con, "select * from tank where id = 1")
    con.commit()
    assert hits(found) == [[(1,)]]


@pytest.mark.parametrize(
    "statement",
    ["drop table tank", "alter table tank add column d integer null", "create index i on tank (name)"],
)
def test_altering_a_watched_table_ends_the_watch(con: Connection, statement: str) -> None:
    found: list[Notification] = []
    subscription = con.database.watch("select * from tank", found.append)
    con.execute(statement)
    assert (found, subscription.active) == ([], False)


def test_altering_another_table_does_not(con: Connection) -> None:
    found = watching(con, "select * from tank")
    con.executescript("create table x (id integer primary key); drop table x; analyze;")
    con.execute("insert into tank values (1, 'north', 1)")
    assert hits(found) == [[]]


def test_a_subscription_has_an_id_and_ends(con: Connection) -> None:
    found: list[Notification] = []
    subscription = con.database.watch("select * from tank", found.append)
    kind, digest, nonce = subscription.id.split(":")
    assert (kind, len(digest), nonce.isdigit()) == ("watch", 6, True)
    subscription.unsubscribe()
    con.execute("insert into tank values (1, 'north', 1)")
    assert (found, con.database.engine.records_changes) == ([], False)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("select * from tank where id = ?", r"watch: scope has unbound parameters \[1\]"),
        (ChangeScope.of([Watch("main", "x")]), "watch: table main.x does not exist"),
        (ChangeScope.of([Watch("main", "tank", ("z",))]), "watch: column 'z' does not exist on main.tank"),
        (3, "watch takes SQL or a change scope, not int"),
    ],
)
def test_what_cannot_be_watched(con: Connection, what: Any, message: str) -> None:
    with pytest.raises(Error, match=message):
        con.database.watch(what, print)


def test_an_empty_scope_is_accepted_with_a_warning(con: Connection, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="quereus_store.events"):
        con.database.watch("select 1", print)
    assert "no table is watched" in caplog.text


def test_external_changes_touch_all_that_is_registered(con: Connection) -> None:
    found = watching(con, "select * from tank where id in (1, 2)")
    row = watching(con, "select * from tank where id = 1")
    con.database.notify_external_change("Tank")
    con.database.notify_external_change("unknown")
    assert (hits(found), hits(row)) == ([[]], [[(1,)]])


steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert or replace into tank values (?, ?, ?)"), st.integers(0, 4)),
        st.tuples(st.just("delete from tank where id = ? or name = ?"), st.integers(0, 4)),
        st.tuples(st.just("update or replace tank set id = ?, name = ? where litres = ?"), st.integers(0, 4)),
        st.tuples(
            st.sampled_from(["begin", "commit", "rollback", "savepoint s", "rollback to s", "release s"]),
            st.none(),
        ),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps=steps, seed=st.integers(0, 3))
def test_whoever_replays_the_events_has_the_same_rows(steps: list[tuple[str, int | None]], seed: int) -> None:
    """A replica fed by data events equals the table after each commit, and no watch misses a change."""
    con = quereus_store.connect(":memory:")
    con.execute("create table tank (id integer primary key, name text, litres integer)")
    replica: dict[Any, Any] = {}
    notified: list[Notification] = []

    def replay(event: Any) -> None:
        if event.type == "insert":
            assert event.key not in replica
            replica[event.key] = event.new_row
        else:
            assert replica.pop(event.key) == event.old_row
            if event.type == "update":
                replica[event.key] = event.new_row

    con.database.on_data_change(replay)
    con.database.watch("select * from tank where id = 1", notified.append)
    before = None
    for number, (sql, value) in enumerate(steps):
        parameters = (
            () if value is None else (value, "abc"[(number + seed) % 3], number % 4)[: sql.count("?")]
        )
        try:
            con.execute(sql, parameters)
        except Error:
            continue
        if not con.in_transaction:
            rows = con.execute("select * from tank").fetchall()
            assert sorted(replica.values()) == sorted(rows)
            watched = [row for row in rows if row[0] == 1]
            if before is not None and watched != before:
                assert notified
            notified.clear()
            before = watched
