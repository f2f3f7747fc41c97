"""What other processes commit to the same LMDB file: found by change counters, when somebody looks."""

import subprocess
import sys
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.events import Notification


def elsewhere(path: Path, sql: str) -> None:
    """Run a statement in another process."""
    program = (
        "import sys, quereus_store\nwith quereus_store.connect(sys.argv[1]) as con: con.execute(sys.argv[2])"
    )
    subprocess.run([sys.executable, "-c", program, str(path), sql], check=True, timeout=60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shared.qdb"


@pytest.fixture
def con(path: Path) -> Connection:
    con = quereus_store.connect(path)
    con.execute("create table tank (id integer primary key, litres real)")
    con.execute("create table pipe (id integer primary key)")
    con.execute("insert into tank values (1, 1), (2, 2)")
    return con


def test_a_look_finds_what_another_process_has_changed(con: Connection, path: Path) -> None:
    found: list[Notification] = []
    con.database.watch("select * from tank where id = 1", found.append)
    assert not con.database.look_for_foreign_changes()
    elsewhere(path, "update tank set litres = 9")
    assert found == []
    assert con.database.look_for_foreign_changes()
    assert [match.hits for match in found[0].matched] == [((1,),)]
    assert not con.database.look_for_foreign_changes()
    elsewhere(path, "insert into pipe values (1)")
    assert not con.database.look_for_foreign_changes()


def test_a_commit_looks_by_itself(con: Connection, path: Path) -> None:
    found: list[Notification] = []
    con.database.watch("select * from tank where id = 1", found.append)
    con.execute("update tank set litres = 3 where id = 2")
    assert (found, con.database.look_for_foreign_changes()) == ([], False)
    elsewhere(path, "update tank set litres = 9 where id = 1")
    con.execute("insert into pipe values (1)")
    assert len(found) == 1
    con.execute("insert into pipe values (2)")
    assert len(found) == 1
    assert not con.database.look_for_foreign_changes()


def test_a_table_that_another_process_has_altered_is_watched_no_more(con: Connection, path: Path) -> None:
    stream = con.database.watch("select * from tank")
    elsewhere(path, "alter table tank add column depth integer null")
    con.database.look_for_foreign_changes()
    con.execute("insert into tank values (3, 3, 3)")
    assert stream.closed
