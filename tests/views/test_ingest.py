"""Rows that a host has stored past the engine: views follow the report, and so does whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quereus_store
from quereus_store import Connection
from quereus_store.errors import Error, StatusCode
from quereus_store.events import AssertionFailure, ChangeScope, ExternalChange, Full, Watch
from tests.connecting import STORAGES, connected
from tests.views.test_equality import BODIES, OVER_VIEWS, QUIET, check, prepare

Report = list[ExternalChange]


class Host:
    """Writes rows by the handles of their tables, as a host does, and keeps what is to be reported."""

    def __init__(self, con: Connection) -> None:
        self.con = con
        self.report: Report = []

    def _write(self, name: str, change: Callable[[Any, Any], Any]) -> None:
        """Within the open transaction of the connection, or past it."""
        table = self.con.database.catalog.table("main", name)
        assert table is not None
        module = self.con.database.modules[table.module]
        transaction = self.con.session.transaction
        if transaction is not None:
            change(module.table(table), transaction.writer(table.module))
            return
        writer = module.begin_write(5.0)
        change(module.table(table), writer)
        writer.commit()

    def insert(self, name: str, row: Any) -> None:
        self._write(name, lambda handle, writer: handle.insert(writer, [row]))
        self.report.append(ExternalChange(name, "insert", None, row))

    def update(self, name: str, old: Any, new: Any) -> None:
        self._write(name, lambda handle, writer: handle.update(writer, [old], [new]))
        self.report.append(ExternalChange(name, "update", old, new))

    def delete(self, name: str, row: Any) -> None:
        self._write(name, lambda handle, writer: handle.delete(writer, [row]))
        self.report.append(ExternalChange(name, "delete", row))

    def ingest(self, **options: Any) -> list[AssertionFailure]:
        """Report all that was written since the last report."""
        report, self.report = self.report, []
        return self.con.ingest_external_row_changes(report, **options)


@pytest.fixture(params=STORAGES)
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    with connected(request.param, tmp_path) as connection:
        connection.executescript(
            "create table tank (id integer primary key, kind text, litres integer null);"
            "insert into tank values (1, 'oil', 10), (2, 'oil', 5), (3, 'gas', 7);"
            "create materialized view per_kind as"
            " select kind, count(*) as tanks, sum(litres) as litres from tank group by kind;"
            "create materialized view large as select kind from per_kind where litres > 9;"
        )
        yield connection


@pytest.fixture
def host(con: Connection) -> Host:
    return Host(con)


def rows(con: Connection, sql: str) -> list[Any]:
    return con.execute(sql).fetchall()


# --- views ------------------------------------------------------------------------------------------------


def test_views_and_the_views_over_them_follow(con: Connection, host: Host) -> None:
    host.insert("tank", (4, "gas", 3))
    host.update("tank", (2, "oil", 5), (2, "tar", 50))
    host.delete("tank", (1, "oil", 10))
    assert rows(con, "select * from per_kind") == [("gas", 1, 7), ("oil", 2, 15)]
    host.ingest()
    assert rows(con, "select * from per_kind") == [("gas", 2, 10), ("tar", 1, 50)]
    assert rows(con, "select * from large") == [("gas",), ("tar",)]
    assert con.database.check() == []


def test_rows_that_come_and_go_in_one_report_leave_nothing(con: Connection, host: Host) -> None:
    before = rows(con, "select * from per_kind")
    host.insert("tank", (4, "tar", 1))
    host.update("tank", (4, "tar", 1), (5, "tar", 1))
    host.update("tank", (5, "tar", 1), (4, "tar", 2))
    host.delete("tank", (4, "tar", 2))
    host.ingest()
    assert rows(con, "select * from per_kind") == before


def test_a_report_belongs_to_the_open_transaction(con: Connection, host: Host) -> None:
    con.begin()
    host.insert("tank", (4, "tar", 90))
    host.ingest()
    con.execute("savepoint s")
    host.delete("tank", (3, "gas", 7))
    host.ingest()
    assert rows(con, "select kind from per_kind") == [("oil",), ("tar",)]
    con.execute("rollback to s")
    assert rows(con, "select kind from per_kind") == [("gas",), ("oil",), ("tar",)]
    con.rollback()
    assert rows(con, "select * from per_kind") == [("gas", 1, 7), ("oil", 2, 15)]
    assert con.database.check() == []


def test_what_a_view_refuses_undoes_what_followed_and_no_more(con: Connection, host: Host) -> None:
    con.execute(
        "create table small (kind text primary key, litres numeric null check (litres < 100))"
        " maintained as select kind, litres from per_kind"
    )
    con.begin()
    con.execute("insert into tank values (9, 'tar', 1)")
    host.insert("tank", (4, "gas", 200))
    with pytest.raises(
        quereus_store.IntegrityError, match=r"row derived into maintained table 'main\.small'"
    ):
        host.ingest()
    assert con.in_transaction
    assert rows(con, "select * from per_kind") == [("gas", 1, 7), ("oil", 2, 15), ("tar", 1, 1)]


def test_views_may_be_left_as_they_are(con: Connection, host: Host) -> None:
    con.execute(
        "create materialized view mean as select kind, avg(litres * 0.1) as m from tank group by kind"
    )
    con.execute("insert into tank values (4, 'gas', 3)")  # so that the states of the groups are known
    host.insert("tank", (5, "gas", 8))
    host.ingest(maintain=False)
    assert rows(con, "select litres from per_kind where kind = 'gas'") == [(10,)]
    for name in ("per_kind", "large", "mean"):
        con.execute(f"refresh materialized view {name}")
    con.execute("insert into tank values (6, 'gas', 0)")
    assert con.database.check() == []


def test_nothing_is_judged_again(con: Connection, host: Host) -> None:
    con.execute("create table part (id integer primary key, tank integer null references tank (id))")
    con.execute("create materialized view parts as select tank, count(*) as n from part group by tank")
    host.insert("part", (1, 77))
    host.ingest()
    assert rows(con, "select * from parts") == [(77, 1)]


def test_no_report_is_nothing(con: Connection) -> None:
    assert con.ingest_external_row_changes([]) == []
    assert con.ingest_external_row_changes(iter(()), assertion_failures="report") == []


WRONG_KINDS: list[tuple[tuple[Any, ...], str]] = [
    ((None, "insert", None, (1, "oil", 2)), "the table of a change is a str, not NoneType"),
    (("tank", ["insert"], None, (1, "oil", 2)), "the op of a change is a str, not list"),
    (("tank", "insert", None, (1, "oil", 2), 3), "the schema of a change is a str, not int"),
    (("tank", "insert", None, 5), "newRow is a sequence of values, not int"),
    (("tank", "delete", "oil"), "oldRow is a sequence of values, not str"),
    (("tank", "insert", None, (1, "oil", "2")), "newRow has a value of str for column 'litres' (INTEGER)"),
    (("tank", "insert", None, (1, [], 2)), "newRow has a value of list for column 'kind' (TEXT)"),
    (("tank", "delete", (1, "oil", object())), "oldRow has a value of object for column 'litres' (INTEGER)"),
]


def test_what_is_no_iterable_of_reports(con: Connection) -> None:
    for changes in (None, 5, ExternalChange("tank", "delete", (1, "oil", 2))):
        with pytest.raises(Error, match="row changes are an iterable of them") as raised:
            con.ingest_external_row_changes(changes)  # type: ignore[arg-type]
        assert raised.value.code is StatusCode.MISUSE


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (ExternalChange("tank", "upsert", None, (1,)), StatusCode.MISUSE, "unknown op 'upsert'"),  # type: ignore[arg-type]
        (
            ExternalChange("TANK", "insert", None, (1, "oil")),
            StatusCode.MISUSE,
            "newRow arity 2 does not match 'main.tank' column count 3",
        ),
        (
            ExternalChange("tank", "delete", (1,)),
            StatusCode.MISUSE,
            "oldRow arity 1 does not match 'main.tank' column count 3",
        ),
        (
            ExternalChange("tank", "update", None, (1, "oil", 2)),
            StatusCode.MISUSE,
            "oldRow is required for op 'update'",
        ),
        (ExternalChange("tank", "insert"), StatusCode.MISUSE, "newRow is required for op 'insert'"),
        (ExternalChange("x", "delete", (1,)), StatusCode.NOTFOUND, "table 'main.x' not found"),
        ({"table_name": "tank"}, StatusCode.MISUSE, "a change is an ExternalChange, not dict"),
        *(
            (ExternalChange(*wrong), StatusCode.MISUSE, message)
            for wrong, message in WRONG_KINDS  # type: ignore[misc]
        ),
    ],
)
def test_what_is_no_report_is_told_before_anything_follows(
    con: Connection, change: Any, code: StatusCode, message: str
) -> None:
    with pytest.raises(Error) as raised:
        con.ingest_external_row_changes([ExternalChange("tank", "insert", None, (9, "tar", 1)), change])
    assert (raised.value.code, raised.value.message) == (code, f"ingestExternalRowChanges: {message}")
    assert rows(con, "select * from per_kind") == [("gas", 1, 7), ("oil", 2, 15)]


def test_a_module_of_a_third_party_reports_its_rows(con: Connection) -> None:
    from tests.views.test_hosts import Host as HostModule

    con.database.register_module(HostModule())  # type: ignore[arg-type]
    con.execute("create table far (id integer primary key, n real) using host")
    con.execute("create materialized view sums as select id % 2 as odd, avg(n) as m from far group by id % 2")
    host = Host(con)
    for number in range(1, 5):
        host.insert("far", (number, number / 8))
        host.ingest()
    host.update("far", (3, 0.375), (2 + 4, 9.0))
    host.ingest()
    assert rows(con, "select * from sums") == [(0, 9.75 / 3), (1, 0.125)]
    assert con.database.check() == []


# --- foreign keys -----------------------------------------------------------------------------------------

FOLLOWED = {
    "on delete cascade on update cascade": [(2, 20)],
    "on delete set null on update set null": [(1, None), (2, None)],
    "on delete set default on update set default": [(1, 3), (2, 3)],
    "on delete restrict on update restrict": [(1, 1), (2, 2)],
}


@pytest.mark.parametrize("actions", FOLLOWED)
def test_actions_of_foreign_keys_follow_if_asked_for(con: Connection, host: Host, actions: str) -> None:
    con.execute(
        "create table part (id integer primary key,"
        f" tank integer null default 3 references tank (id) {actions})"
    )
    con.execute("insert into part values (1, 1), (2, 2)")
    con.execute("create materialized view used as select tank, count(*) as n from part group by tank")
    host.delete("tank", (1, "oil", 10))
    host.update("tank", (2, "oil", 5), (20, "oil", 5))
    host.ingest(foreign_key_actions=True)
    assert rows(con, "select id, tank from part") == FOLLOWED[actions]
    assert con.database.check() == []


def test_without_being_asked_for_nothing_is_done_to_rows_that_refer(con: Connection, host: Host) -> None:
    con.execute(
        "create table part (id integer primary key, tank integer references tank (id) on delete cascade)"
    )
    con.execute("insert into part values (1, 1)")
    host.delete("tank", (1, "oil", 10))
    host.ingest()
    assert rows(con, "select * from part") == [(1, 1)]


# --- watches, events, assertions --------------------------------------------------------------------------


def test_watches_and_listeners_are_told_unless_capture_is_off(con: Connection, host: Host) -> None:
    con.execute("create table plain (id integer primary key)")  # read by no view
    told: list[Any] = []
    con.database.watch("select * from plain", lambda note: told.append(note.matched[0].watch.table))
    con.database.watch("select * from per_kind where kind = 'tar'", lambda note: told.append("through"))
    con.database.on_data_change(lambda event: told.append((event.type, event.key, event.remote)))
    report = [ExternalChange("plain", "insert", None, (1,))]
    con.ingest_external_row_changes(report)
    assert sorted(map(str, told)) == ["('insert', (1,), True)", "plain"]
    told.clear()
    con.ingest_external_row_changes(report, capture=False)
    assert told == []


def test_with_capture_off_views_are_watched_all_the_same() -> None:
    # In memory: a store counts the changes of its tables, so its watches find out by themselves.
    memory = connected("memory", Path())
    memory.execute("create table t (id integer primary key, n integer)")
    memory.execute("create materialized view v as select n, count(*) as c from t group by n")
    told: list[str] = []
    for name in ("t", "v"):
        scope = ChangeScope((Watch("main", name, "all", Full()),))
        memory.database.watch(scope, lambda note, name=name: told.append(name))
    other = Host(memory)
    other.insert("t", (1, 5))
    other.ingest(capture=False)
    assert told == ["v"]
    other.insert("t", (2, 5))
    other.ingest()
    assert told == ["v", "t", "v"]


def test_an_assertion_that_a_report_breaks_fails_it(con: Connection, host: Host) -> None:
    con.execute("create assertion small check (not exists (select 1 from tank where litres > 100))")
    host.insert("tank", (4, "gas", 101))
    with pytest.raises(quereus_store.IntegrityError, match=r"Integrity assertion failed: small \[\(.*\)\]"):
        host.ingest()
    assert rows(con, "select tanks from per_kind where kind = 'gas'") == [(1,)]


def test_assertions_that_are_broken_may_be_reported(con: Connection, host: Host) -> None:
    con.execute("create assertion small check (not exists (select 1 from tank where litres > 100))")
    con.execute("insert into tank values (4, 'gas', 1)")  # it is known to hold now
    for number in range(5, 12):
        host.insert("tank", (number, "gas", 100 + number))
    (failure,) = host.ingest(assertion_failures="report")
    assert failure.assertion == "small"
    assert 1 <= len(failure.samples) <= 5
    assert rows(con, "select tanks from per_kind where kind = 'gas'") == [(9,)]
    with pytest.raises(quereus_store.IntegrityError, match="Integrity assertion failed: small"):
        con.execute("update tank set litres = 2 where id = 4")  # it is not taken to hold any more
    con.execute("delete from tank where litres > 100")
    assert host.ingest(assertion_failures="report") == []


def test_with_capture_off_assertions_do_not_see_the_rows(con: Connection, host: Host) -> None:
    con.execute("create assertion small check (not exists (select 1 from tank where litres > 100))")
    con.execute("insert into tank values (4, 'gas', 1)")
    host.insert("tank", (5, "gas", 101))
    host.ingest(capture=False)
    assert rows(con, "select tanks from per_kind where kind = 'gas'") == [(3,)]
    with pytest.raises(quereus_store.IntegrityError, match="Integrity assertion failed: small"):
        con.execute("update tank set litres = 2 where id = 4")


def test_failures_are_reported_of_a_transaction_of_its_own_only(con: Connection) -> None:
    report = [ExternalChange("tank", "insert", None, (9, "tar", 1))]
    with pytest.raises(quereus_store.Error, match="with capture on"):
        con.ingest_external_row_changes(report, assertion_failures="report", capture=False)
    con.begin()
    with pytest.raises(quereus_store.Error, match="of a transaction of its own"):
        con.ingest_external_row_changes(report, assertion_failures="report")
    with pytest.raises(quereus_store.Error, match="'throw' or 'report', not 'ignore'"):
        con.ingest_external_row_changes(report, assertion_failures="ignore")  # type: ignore[arg-type]


# --- whatever is reported ---------------------------------------------------------------------------------

items = st.tuples(
    st.integers(1, 12),
    st.sampled_from(["a", "A", "b"]),
    st.none() | st.integers(1, 4),
    st.none() | st.sampled_from([0.5, -3.0, 0.0, -0.0]),
    st.integers(0, 5),
)
boxes = st.tuples(
    st.integers(1, 4),
    st.sampled_from(["x", "X", "y"]),
    st.none() | st.integers(0, 3),
)
ROWS = {"item": items, "box": boxes}
works = st.sampled_from(list(ROWS)).flatmap(
    lambda name: st.tuples(st.just(name), st.integers(0, 20), st.none() | ROWS[name])
)
reports = st.lists(works, min_size=1, max_size=8)
steps = st.lists(
    reports
    | st.sampled_from(
        ["begin", "commit", "rollback", "savepoint s", "rollback to s", "update item set n = n + 1"]
    ),
    min_size=1,
    max_size=8,
)


def work(host: Host, name: str, choice: int, row: Any) -> None:
    """Insert a row whose key is free, else replace or remove one that there is."""
    stored = rows(host.con, f"select * from {name}")
    if row is not None and row[0] not in [known[0] for known in stored] and choice % 2:
        host.insert(name, row)
    elif stored:
        old = stored[choice % len(stored)]
        if row is None:
            host.delete(name, old)
        elif row[0] == old[0] or row[0] not in [known[0] for known in stored]:
            host.update(name, old, row)


@QUIET
@given(
    storage=st.sampled_from(STORAGES),
    chosen=st.lists(st.sampled_from(BODIES), min_size=1, max_size=4, unique=True),
    over=st.lists(st.sampled_from(OVER_VIEWS[:2]), max_size=1),
    steps=steps,
)
def test_views_equal_their_bodies_after_every_report(
    storage: str, chosen: list[str], over: list[str], steps: list[Any], tmp_path_factory: Any
) -> None:
    with connected(storage, tmp_path_factory.mktemp("ingest")) as con:
        bodies = prepare(con, chosen, over)
        host = Host(con)
        for step in steps:
            if isinstance(step, str):
                try:
                    con.execute(step)
                except quereus_store.Error:
                    continue
            else:
                for one in step:
                    work(host, *one)
                host.ingest()
            check(con, bodies)
        con.rollback()
        check(con, bodies)
