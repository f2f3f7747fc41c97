"""ATTACH and DETACH with files: who sees them, what a commit over several is, what is refused."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection, Error, StatusCode
from quereus_store.api.opening import _OPEN
from quereus_store.store.module import StoreModule

BACKENDS = ("lmdb", "leveldb")


@pytest.fixture(params=["memory", "lmdb"])
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    """A connection with a table ``t``."""
    options = {} if request.param == "memory" else {"backend": request.param}
    with quereus_store.connect(
        ":memory:" if request.param == "memory" else tmp_path / "main", timeout=0, **options
    ) as it:
        it.execute("create table t (id integer primary key, v text)")
        it.execute("insert into t values (1, 'main')")
        yield it


@pytest.fixture(params=BACKENDS)
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with the database that ``SCHEMA`` makes, which is not open."""
    path = tmp_path / "other"
    with quereus_store.connect(path, backend=request.param) as it:
        it.executescript(SCHEMA)
    return path


SCHEMA = """
create table parent (id integer primary key, v text default ('x' || 'y'), check (v <> 'bad'));
create table child (
    id integer primary key, parent_id integer null references main.parent (id) on delete cascade
);
create index by_parent on child (parent_id) where parent_id > 0;
create view joined as select c.id, main.parent.v from main.child c join parent on parent.id = c.parent_id;
create materialized view each as select parent_id, count(*) as n from child group by parent_id;
create assertion few check ((select count(*) from main.parent) < 5);
insert into parent values (1, 'one'), (2, 'two');
insert into child values (1, 1), (2, 1), (3, 2);
"""


def rows(con: Connection, sql: str) -> list[Any]:
    return con.execute(sql).fetchall()


def refused(code: StatusCode, message: str, run: Callable[[], Any]) -> Error:
    with pytest.raises(Error) as caught:
        run()
    assert caught.value.code is code
    assert message in str(caught.value)
    return caught.value


def in_another_process(path: Path, script: str) -> str:
    """Run a script over a connection ``con`` to a file; what it prints."""
    connecting = f"import quereus_store\ncon = quereus_store.connect({str(path)!r}, timeout=0)"
    program = f"{connecting}\n{script}\ncon.close()\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- what is in the file ----------------------------------------------------------------------------------


def test_objects_of_a_file_are_found_and_kept_up(con: Connection, other: Path) -> None:
    con.execute("attach ? as aux", (str(other),))
    assert con.database.problems == ()
    assert rows(con, "select * from aux.joined order by id") == [(1, "one"), (2, "one"), (3, "two")]
    con.execute("delete from parent where id = 1")
    con.execute("insert into parent (id) values (7)")
    con.execute("insert into child values (4, 7)")
    assert rows(con, "select * from aux.each order by parent_id") == [(2, 1), (7, 1)]
    for sql in ("insert into parent values (8, 'bad')", "insert into child values (9, 9)"):
        refused(StatusCode.CONSTRAINT, "CHECK", lambda sql=sql: con.execute(sql))
    refused(
        StatusCode.CONSTRAINT,
        "assertion failed: aux.few",
        lambda: con.execute("insert into parent values (11, 'a'), (12, 'b'), (13, 'c')"),
    )
    assert con.database.check() == []


def test_definitions_go_to_the_file(con: Connection, other: Path) -> None:
    con.execute("attach ? as aux", (str(other),))
    con.executescript(
        """
        create table aux.made (id integer primary key, parent_id integer references aux.parent (id));
        create unique index aux.made_once on made (parent_id);
        create view aux.seen as select aux.made.id, v from aux.made join parent p on p.id = parent_id;
        create materialized view aux.sums as select v, count(*) as n from parent group by v;
        create assertion aux.some check (exists (select 1 from aux.parent));
        alter table aux.parent rename column v to w;
        alter table aux.child add column note text default 'none';
        insert into aux.made values (1, 2);
        analyze aux.made;
        detach aux;
        """
    )
    with quereus_store.connect(other) as alone:
        assert alone.database.problems == ()
        assert rows(alone, "select * from seen") == [(1, "two")]
        assert rows(alone, "select * from main.sums order by 1") == [("one", 1), ("two", 1)]
        assert rows(alone, "select * from child where id = 3") == [(3, 2, "none")]
        refused(StatusCode.CONSTRAINT, "made PK", lambda: alone.execute("insert into made values (1, 1)"))
        refused(StatusCode.CONSTRAINT, "UNIQUE", lambda: alone.execute("insert into made values (2, 2)"))
        alone.execute("delete from made")
        refused(StatusCode.CONSTRAINT, "failed: some", lambda: alone.execute("delete from parent"))
        alone.execute("insert into made values (1, 2)")
        shown = "select sql from schema() where type <> 'function'"
        assert not [sql for (sql,) in rows(alone, shown) if "aux" in sql]
        assert alone.database.check() == []
    # Under another name it is the same.
    con.execute("attach ? as other", (str(other),))
    assert rows(con, "select * from other.seen") == [(1, "two")]


def test_a_file_is_made_where_there_is_none(con: Connection, tmp_path: Path) -> None:
    con.execute("attach ? as l (backend = leveldb)", (str(tmp_path / "folder"),))
    con.execute("attach ? as m", (str(tmp_path / "file"),))
    con.execute("create table l.a (id integer primary key)")
    con.execute("create table m.a (id integer primary key)")
    con.execute("insert into l.a values (1)")
    con.execute("insert into m.a select id + 1 from l.a")
    con.execute("detach l")
    con.execute("detach m")
    assert (tmp_path / "folder").is_dir()
    for name, row in (("folder", 1), ("file", 2)):
        with quereus_store.connect(tmp_path / name) as alone:
            assert rows(alone, "select * from a") == [(row,)]


def test_read_only(con: Connection, other: Path) -> None:
    con.execute("attach ? as aux (readonly = true)", (str(other),))
    assert len(rows(con, "select * from child")) == 3
    refused(StatusCode.READONLY, "", lambda: con.execute("delete from child"))
    con.execute("insert into t values (2, 'own')")


def test_names_are_told(con: Connection, other: Path) -> None:
    events: list[Any] = []
    con.database.events.on_data_change(events.append)
    con.execute("attach ? as aux", (str(other),))
    con.execute("insert into child values (9, 2)")
    assert [(event.schema_name, event.table_name) for event in events] == [("aux", "child")]
    main = str(con.database.path.resolve()) if con.database.path else ""
    assert rows(con, "pragma database_list") == [(0, "main", main), (2, "aux", str(other))]


def test_watches_end_with_the_attachment(con: Connection, other: Path) -> None:
    con.execute("attach ? as aux", (str(other),))
    told: list[Any] = []
    watch = con.database.watch("select count(*) from aux.child", told.append)
    con.execute("insert into child values (9, 2)")
    assert len(told) == 1
    with quereus_store.connect(other) as alone:
        alone.execute("insert into child values (10, 2)")
    assert con.database.look_for_foreign_changes()
    con.execute("detach aux")
    assert not watch.active
    assert not con.database.look_for_foreign_changes()


# --- transactions -----------------------------------------------------------------------------------------


def test_a_rollback_undoes_all(con: Connection, other: Path) -> None:
    con.execute("attach ? as aux", (str(other),))
    con.execute("begin")
    con.execute("delete from t")
    con.execute("create table aux.more (id integer primary key)")
    con.execute("savepoint s")
    con.execute("delete from child")
    con.execute("create table aux.still_more (id integer primary key)")
    refused(
        StatusCode.CONSTRAINT,
        "UNIQUE",
        lambda: con.execute(
            "insert into more select id from child union all select 1 from t union all values (4), (4)"
        ),
    )
    con.execute("rollback to s")
    assert len(rows(con, "select * from child")) == 3
    assert rows(con, "select name from schema() where name like '%more'") == [("more",)]
    con.execute("rollback")
    assert len(rows(con, "select * from t")) == 1
    assert rows(con, "select name from schema() where name like '%more'") == []


@pytest.fixture
def failing(con: Connection, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Attach ``a`` and ``b``, with a table each; calling this lets the commits of a database fail."""
    for name in ("a", "b"):
        con.execute(f"attach ? as {name}", (str(tmp_path / name),))
        con.execute(f"create table {name}.item (id integer primary key)")
    broken: list[Any] = []

    def fault(what: str) -> None:
        if what == "commit":
            raise OSError(28, "No space left on device")

    def fail(name: str) -> None:
        module: Any = con.database.engine.attachments.databases[name].module
        broken.append(module.backend)
        module.backend.faults = fault

    yield fail
    for backend in broken:
        backend.faults = None


def write_all(con: Connection) -> None:
    con.execute("begin")
    # The order in which they are written to is not that of the commit.
    for name in ("b.item (id)", "a.item (id)", "t"):
        con.execute(f"insert into {name} values ({'8' if name != 't' else '8, ' + repr('w')})")
    con.execute("commit")


def counts(con: Connection) -> list[int]:
    return [
        rows(con, f"select count(*) from {name} where id = 8")[0][0] for name in ("t", "a.item", "b.item")
    ]


def test_the_first_commit_fails(con: Connection, failing: Callable[[str], None]) -> None:
    failing("a")
    con.execute("begin")
    con.execute("insert into b.item values (8)")
    con.execute("insert into a.item values (8)")
    error = refused(StatusCode.FULL, "", lambda: con.execute("commit"))
    assert "committed" not in str(error)
    assert not con.in_transaction
    assert counts(con) == [0, 0, 0]


def test_a_later_commit_fails(con: Connection, failing: Callable[[str], None]) -> None:
    failing("b")
    in_file = con.database.path is not None
    error = refused(StatusCode.FULL, "rolled back in ", lambda: write_all(con))
    done, lost = (("main", "a"), ("b",)) if in_file else (("a",), ("b", "main"))
    assert error.details["committed"] == done
    assert error.details["rolled_back"] == lost
    assert f"committed in {', '.join(done)}, rolled back in {', '.join(lost)}" in str(error)
    assert counts(con) == [int(in_file), 1, 0]


def test_definitions_of_a_commit_that_fails_in_part(con: Connection, failing: Callable[[str], None]) -> None:
    failing("b")
    con.execute("begin")
    for name in ("main", "a", "b"):
        con.execute(f"create table {name}.made (id integer primary key)")
    refused(StatusCode.FULL, "rolled back in ", lambda: con.execute("commit"))
    found = {schema for (schema,) in rows(con, "select schema from schema() where name = 'made'")}
    assert found == ({"main", "a"} if con.database.path is not None else {"a"})
    for name in found:
        con.execute(f"insert into {name}.made values (1)")


def test_somebody_else_writes_to_one(con: Connection, other: Path) -> None:
    con.execute("attach ? as aux", (str(other),))
    with quereus_store.connect(other, timeout=0) as alone:
        alone.execute("begin immediate")
        refused(StatusCode.BUSY, "locked", lambda: con.execute("delete from child"))
        con.execute("insert into t values (2, 'own')")
        alone.execute("rollback")
        con.execute("delete from child where id = 3")

        # Whoever has read decides on what is there no more.
        con.execute("begin")
        assert rows(con, "select count(*) from child") == [(2,)]
        alone.execute("insert into child values (8, 2)")
        assert rows(con, "select count(*) from child") == [(2,)]
        con.execute("insert into t values (3, 'own')")
        refused(StatusCode.BUSY, "committed since", lambda: con.execute("delete from child"))
        con.execute("rollback")
        assert rows(con, "select count(*) from child") == [(3,)]

        # A change alone looks again.
        con.execute("begin")
        alone.execute("insert into child values (9, 2)")
        con.execute("update child set parent_id = null where id = 9")
        con.execute("commit")
        assert rows(alone, "select * from child where id = 9") == [(9, None)]


# --- who sees it ------------------------------------------------------------------------------------------


def test_all_connections_see_it(con: Connection, other: Path) -> None:
    with Connection(con.database) as second:
        con.execute("attach ? as aux", (str(other),))
        assert rows(second, "select count(*) from child") == [(3,)]
        second.execute("begin")
        rows(second, "select * from t")
        refused(StatusCode.BUSY, "database aux is locked", lambda: con.execute("detach aux"))
        second.execute("commit")
        cursor = second.execute("select * from aux.child")
        cursor.fetchone()
        refused(StatusCode.BUSY, "database aux is locked", lambda: con.execute("detach aux"))
        del cursor
        con.execute("detach aux")
        refused(StatusCode.NOTFOUND, "child", lambda: rows(second, "select count(*) from child"))


def test_a_transaction_that_was_open_before_goes_on_without(con: Connection, other: Path) -> None:
    with Connection(con.database) as second:
        second.execute("begin")
        second.execute("create table early (id integer primary key)")
        con.execute("attach ? as aux", (str(other),))
        refused(StatusCode.NOTFOUND, "child", lambda: second.execute("select * from child"))
        second.execute("insert into early values (1)")
        second.execute("commit")
        assert rows(con, "select * from early, child where child.id = 1") == [(1, 1, 1)]


def test_two_databases_attach_one_file_and_each_other(tmp_path: Path, other: Path) -> None:
    backend = "leveldb" if other.is_dir() else "lmdb"
    first = quereus_store.connect(tmp_path / "first", backend=backend)
    second = quereus_store.connect(tmp_path / "second", backend=backend)
    for con, path in ((first, "second"), (second, "first")):
        con.execute("attach ? as aux", (str(other),))
        con.execute("attach ? as peer", (str(tmp_path / path),))
    first.execute("insert into aux.child values (8, 1)")
    assert rows(second, "select id from child where id = 8") == [(8,)]
    second.execute("create table peer.given (id integer primary key)")
    second.execute("alter table aux.child add column w integer default 4")
    assert rows(first, "select * from given") == []
    assert rows(first, "select w from child where id = 8") == [(4,)]
    first.close()
    assert rows(second, "select * from peer.given") == []
    second.close()
    assert [place for place in _OPEN._open if str(tmp_path) in place[1]] == []
    # Nothing holds the files any more.
    assert (
        in_another_process(other, "print(con.execute('select count(*) from child').fetchall())") == "[(4,)]\n"
    )


def test_the_file_is_let_go(con: Connection, other: Path) -> None:
    con.execute("attach ? as aux", (str(other),))
    con.execute("insert into child values (8, 1)")
    con.execute("detach aux")
    with quereus_store.connect(other, synchronous="off") as alone:
        assert rows(alone, "select count(*) from child") == [(4,)]


def test_another_process(tmp_path: Path) -> None:
    con, path = quereus_store.connect(), tmp_path / "shared"
    with quereus_store.connect(path) as alone:
        alone.executescript(SCHEMA)
    con.execute("attach ? as aux", (str(path),))
    assert rows(con, "select count(*) from child") == [(3,)]
    in_another_process(
        path,
        "con.execute('insert into child values (8, 2)')\n"
        "con.execute('alter table child add column w integer default 5')\n"
        "con.execute('create table fresh (id integer primary key)')",
    )
    assert rows(con, "select * from child where id = 8") == [(8, 2, 5)]
    con.execute("insert into fresh values (1)")
    con.execute("begin")
    con.execute("insert into fresh values (2)")
    attempt = (
        "try: con.execute('delete from fresh')\nexcept quereus_store.Error as error: print(error.code.name)"
    )
    assert in_another_process(path, attempt) == "BUSY\n"
    con.execute("commit")
    told = in_another_process(
        path,
        "print(con.execute('select * from fresh').fetchall())\n"
        "con.execute('declare schema more {}')\n"
        "con.execute('apply schema more')",
    )
    assert told == "[(1,), (2,)]\n"
    reason = "has a further schema, more"
    refused(StatusCode.UNSUPPORTED, reason, lambda: rows(con, "select 1"))
    con.execute("detach aux")
    refused(StatusCode.UNSUPPORTED, reason, lambda: con.execute("attach ? as aux", (str(path),)))
    assert rows(con, "select 1") == [(1,)]
    con.close()


def test_a_schema_of_the_name_comes_into_being(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "main") as con:
        con.execute("create table t (id integer primary key)")
        con.execute("attach ':memory:' as aux")
        in_another_process(
            tmp_path / "main",
            "con.execute('declare schema aux { table kept { id integer primary key } }')\n"
            "con.execute('apply schema aux')",
        )
        refused(StatusCode.ERROR, "detach the database of that name", lambda: rows(con, "select * from t"))
        con.execute("detach aux")
        assert rows(con, "select * from aux.kept") == []


def test_a_temporary_view_outlives_a_schema_change_elsewhere(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "main") as con:
        con.execute("create table t (id integer primary key)")
        con.execute("create view temp.seen as select * from t")
        in_another_process(tmp_path / "main", "con.execute('create table more (id integer primary key)')")
        assert rows(con, "select * from temp.seen, more") == []


# --- what is refused --------------------------------------------------------------------------------------


def test_one_file_twice(con: Connection, other: Path) -> None:
    con.execute("attach ? as aux", (str(other),))
    refused(StatusCode.ERROR, "already attached as aux", lambda: con.execute("attach ? as b", (str(other),)))
    if con.database.path is not None:
        main = str(con.database.path)
        refused(StatusCode.ERROR, "is the main database", lambda: con.execute("attach ? as b", (main,)))
    assert rows(con, "select count(*) from child") == [(3,)]


def test_what_is_no_database(con: Connection, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 1000)
    (tmp_path / "folder").mkdir()
    before = dict(con.database.modules)
    for name, code in (
        ("text", StatusCode.NOTADB),
        ("folder", StatusCode.CANTOPEN),
        ("a/b", StatusCode.CANTOPEN),
    ):
        refused(code, name, lambda name=name: con.execute("attach ? as aux", (str(tmp_path / name),)))
    for sql in ("attach null as aux", "attach '' as aux"):
        with pytest.raises(Error):
            con.execute(sql)
    absent = (str(tmp_path / "absent"),)
    refused(StatusCode.CANTOPEN, "absent", lambda: con.execute('attach ? as aux ("create" = false)', absent))
    refused(StatusCode.MISUSE, "speed", lambda: con.execute("attach ? as aux (speed = 9)", absent))
    assert dict(con.database.modules) == before
    con.execute("attach ':memory:' as aux")


def test_an_open_file_with_other_options(con: Connection, other: Path) -> None:
    with quereus_store.connect(other):
        refused(
            StatusCode.MISUSE,
            "is open in this process with",
            lambda: con.execute("attach ? as aux (synchronous = off)", (str(other),)),
        )


def test_a_database_with_further_schemas(con: Connection, other: Path) -> None:
    with quereus_store.connect(other) as alone:
        alone.execute("declare schema more { table x { id integer primary key } }")
        alone.execute("apply schema more")
    refused(
        StatusCode.UNSUPPORTED,
        "database aux has a further schema, more, and cannot be attached: connect to it",
        lambda: con.execute("attach ? as aux", (str(other),)),
    )


def test_without_autocommit(other: Path) -> None:
    with quereus_store.connect(autocommit=False) as con:
        refused(StatusCode.ERROR, "within transaction", lambda: con.execute("attach ? as aux", (str(other),)))
        con.autocommit = True
        con.execute("attach ? as aux", (str(other),))
        con.autocommit = False
        con.execute("delete from child")
        con.rollback()
        assert rows(con, "select count(*) from child") == [(3,)]


def test_a_schema_is_not_removed_by_program(con: Connection) -> None:
    con.execute("attach ':memory:' as aux")
    refused(StatusCode.ERROR, "cannot be removed", lambda: con.database.schema_manager.remove_schema("aux"))


def test_nothing_is_left_open_by_a_database_in_memory(other: Path) -> None:
    con = quereus_store.connect()
    con.execute("attach ? as aux", (str(other),))
    assert isinstance(con.database.modules["aux.store"], StoreModule)
    con.close()
    assert [place for place in _OPEN._open if place[1] == str(other)] == []


@pytest.mark.parametrize(
    ("step", "work"),
    [
        ("quereus_store.api.database.check_store", lambda database: database.check()),
        (
            "quereus_store.api.database.watched_tables",
            lambda database: database.watch("select * from aux.child", print),
        ),
        (
            "quereus_store.execute.notification.notifier._Counter.read_now",
            lambda database: database.look_for_foreign_changes(),
        ),
    ],
)
def test_what_reads_it_without_a_connection_keeps_it_attached(
    step: str, work: Callable[[Any], Any], con: Connection, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute("attach ? as aux", (str(other),))
    con.database.watch("select * from aux.parent", print)
    original = pkgutil.resolve_name(step.rpartition(".")[0])
    name = step.rpartition(".")[2]
    before, tries = getattr(original, name), []

    def meanwhile(*arguments: Any) -> Any:
        tries.append(refused(StatusCode.BUSY, "still reads it", lambda: con.execute("detach aux")))
        return before(*arguments)

    monkeypatch.setattr(original, name, meanwhile)
    work(con.database)
    assert tries
    monkeypatch.undo()
    con.execute("detach aux")
    assert con.database.check() == []
    assert not con.database.look_for_foreign_changes()
