"""Logical schemas last, can be dumped, belong to their transaction, and are told to modules."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store.api.dumping import dump_database
from quereus_store.errors import Error
from quereus_store.modules.memory import MemoryModule

DEPLOYED = """
    create table crew (id integer primary key, nick text, age integer null);
    create table berth (id integer primary key, deck text null)
        with tags ("quereus.lens.decomp.key.d" = 'id', "quereus.lens.decomp.col.d.deck" = 'deck',
                   "quereus.lens.decomp.presence.d" = 'optional');
    create table head (id integer primary key, nick text)
        with tags ("quereus.lens.decomp.logical.d" = 'Sailor',
                   "quereus.lens.decomp.role.d" = 'primary-storage',
                   "quereus.lens.decomp.anchor.d" = 'head', "quereus.lens.decomp.keykind.d" = 'logical-tuple',
                   "quereus.lens.decomp.key.d" = 'id', "quereus.lens.decomp.col.d.id" = 'id',
                   "quereus.lens.decomp.col.d.nick" = 'nick');
    declare logical schema ship {
        table Crew (id integer primary key, name text, age integer null,
                    constraint grown check (age > 17), unique (name))
            with tags ("quereus.lens.ack.no-backing-index:name" = 'a small crew')
        table Sailor (id integer primary key, nick text, deck text null)
    };
    declare lens for ship over main { view Crew as select nick as name from crew where id < 1000 };
    apply schema ship;
    insert into ship.Crew values (1, 'Ann', 30), (2, 'Bo', null);
    insert into ship.Sailor values (1, 'Cy', 'low'), (2, 'Di', null);
"""

READS = (
    "select * from ship.Crew order by id",
    "select * from ship.Sailor order by id",
    "select id, deck from berth order by id",
    "select code, status, rationale from quereus_lens_advisories('ship') order by code",
)


def _observed(connection: quereus_store.Connection) -> list[Any]:
    return [connection.execute(text).fetchall() for text in READS]


def _check_enforced(connection: quereus_store.Connection) -> None:
    with pytest.raises(Error, match=r"lens:grown \(NEW.age > 17\)"):
        connection.execute("insert into ship.Crew values (3, 'Ed', 7)")
    with pytest.raises(Error, match="lens:unique"):
        connection.execute("insert into ship.Crew values (3, 'Ann', 70)")


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_a_deployment_comes_back_on_reopen(tmp_path: Path, backend: str) -> None:
    path = str(tmp_path / "ship")
    connection = quereus_store.connect(path, backend=backend)
    connection.executescript(DEPLOYED)
    before = _observed(connection)
    connection.close()
    connection = quereus_store.connect(path, backend=backend)
    assert _observed(connection) == before
    _check_enforced(connection)
    connection.execute("delete from ship.Sailor where id = 1")
    assert connection.execute("select id from berth").fetchall() == []
    connection.close()


def test_a_dump_declares_and_deploys_again() -> None:
    connection = quereus_store.connect(":memory:")
    connection.executescript(DEPLOYED)
    script = io.StringIO()
    dump_database(connection, script)
    copy = quereus_store.connect(":memory:")
    copy.executescript(script.getvalue())
    assert _observed(copy)[:3] == _observed(connection)[:3]
    _check_enforced(copy)
    assert "declare logical schema ship" in script.getvalue()


def test_a_deployment_belongs_to_its_transaction() -> None:
    connection = quereus_store.connect(":memory:")
    connection.executescript(DEPLOYED)
    connection.executescript("declare logical schema ship { table Crew (id integer primary key) }")
    connection.execute("begin")
    connection.execute("apply schema ship")
    with pytest.raises(Error, match=r"Table not found: ship\.Sailor"):
        connection.execute("select * from ship.Sailor")
    connection.execute("rollback")
    assert len(connection.execute("select * from ship.Sailor").fetchall()) == 2


def test_a_failed_deployment_leaves_the_old_one() -> None:
    connection = quereus_store.connect(":memory:")
    connection.executescript(DEPLOYED)
    before = _observed(connection)
    connection.executescript(
        "declare logical schema ship { table Crew (id text primary key, name integer, age integer) }"
    )
    with pytest.raises(Error, match="blocked by 3 error") as caught:
        connection.execute("apply schema ship")
    assert caught.value.details["codes"] == (
        "lens.type-mismatch",
        "lens.type-mismatch",
        "lens.nullability-mismatch",
    )
    assert _observed(connection) == before


class Listening(MemoryModule):
    """A module that wants to be told, and refuses one name."""

    def __init__(self) -> None:
        super().__init__("listening")
        self.told: list[tuple[str, list[tuple[str, tuple[str, ...]]]]] = []

    def notify_lens_deployment(self, schema_name: str, snapshot: Any) -> None:
        self.told.append((schema_name, [(table.table, table.relations) for table in snapshot]))
        if schema_name == "refused":
            raise ValueError("not this one")


def test_modules_are_told_of_a_deployment() -> None:
    connection = quereus_store.connect(":memory:")
    module = Listening()
    connection.database.engine.register_module(module)
    connection.executescript(
        "create table t (a integer primary key);"
        "declare logical schema ok { table t (a integer primary key) }; apply schema ok;"
        "declare logical schema refused { table t (a integer primary key) };"
    )
    assert module.told == [("ok", [("t", ("main.t",))])]
    with pytest.raises(ValueError, match="not this one"):
        connection.execute("apply schema refused")
    assert connection.execute("select * from refused.t").fetchall() == []
