"""Refreshing all maintained tables: sources first, each by itself, whatever state they are in."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.cli.main import main
from tests.connecting import STORAGES, connected

# `summary` reads `wide` through a plain view; names are such that no other order comes about by chance.
SCHEMA = """
create table source (id integer primary key, n integer);
insert into source values (1, 10), (2, 20);
create materialized view wide as select * from source;
create view middle as select * from wide;
create materialized view a_summary as select * from middle where n > 5;
create table b_top (id integer primary key, n integer) maintained as select id, n from a_summary;
"""


@pytest.fixture(params=STORAGES)
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    with connected(request.param, tmp_path) as connection:
        connection.executescript(SCHEMA)
        yield connection


def stale(con: Connection) -> list[Any]:
    return [
        name for (name,) in con.execute("select distinct name from maintenance_info() where stale").fetchall()
    ]


def test_all_are_refreshed_sources_before_their_readers(con: Connection) -> None:
    con.execute("alter table source add column more integer default 7")
    con.execute("insert into source values (3, 30, 8)")
    assert sorted(stale(con)) == ["a_summary", "b_top", "wide"]
    refreshed = con.refresh_all()
    assert [(view.schema_name, view.name) for view in refreshed] == [
        ("main", "wide"),
        ("main", "a_summary"),
        ("main", "b_top"),
    ]
    assert stale(con) == []
    # One round was enough, although each took its new shape from the one before.
    assert con.execute("select * from a_summary").fetchall() == [(1, 10, 7), (2, 20, 7), (3, 30, 8)]
    assert con.execute("select * from b_top").fetchall() == [(1, 10), (2, 20), (3, 30)]
    con.execute("insert into source values (4, 40, 9)")
    assert con.database.check() == []


def test_a_body_that_can_be_planned_only_after_its_source_is_refreshed(con: Connection) -> None:
    con.execute("create materialized view again as select id, n as m from source")
    con.execute("create materialized view a_over as select id, m from again")
    con.execute("drop table source")
    con.execute("create table source (id integer primary key, n integer)")
    con.execute("insert into source values (9, 90)")
    assert len(con.refresh_all()) == 5
    assert con.execute("select * from a_over").fetchall() == [(9, 90)]


def test_one_that_fails_keeps_none_of_the_others_from_it(con: Connection) -> None:
    con.execute("create table other (id integer primary key)")
    con.execute("create materialized view of_other as select id from other")
    con.execute("create materialized view of_both as select w.id from wide w join of_other o on o.id = w.id")
    con.execute("drop table other")
    con.execute("alter table source add column more integer default 7")
    with pytest.raises(quereus_store.Error, match="materialized view 'of_other' is stale") as raised:
        con.refresh_all()
    details = raised.value.details
    assert details["refreshed"] == ("main.wide", "main.a_summary", "main.b_top")
    assert set(details["failed"]) == {"main.of_other", "main.of_both"}
    assert con.execute("select count(*), max(more) from a_summary").fetchall() == [(2, 7)]


def test_within_a_transaction_all_of_it_goes_back(con: Connection) -> None:
    con.begin()
    con.execute("alter table source add column more integer default 7")
    con.refresh_all()
    assert stale(con) == []
    con.rollback()
    assert stale(con) == []
    assert con.execute("select * from a_summary").fetchall() == [(1, 10), (2, 20)]


def test_nothing_to_refresh_is_fine() -> None:
    with connected("memory", Path()) as con:
        assert con.refresh_all() == []


def test_the_command_and_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "db")
    with quereus_store.connect(path) as con:
        pass
    assert main(["refresh", path]) == 0
    assert capsys.readouterr().out == "There are no materialized views.\n"
    with quereus_store.connect(path) as con:
        con.executescript(SCHEMA)
        con.execute("alter table source add column more integer default 7")
    assert main(["refresh", path]) == 0
    assert (
        capsys.readouterr().out == "main.wide: refreshed\nmain.a_summary: refreshed\nmain.b_top: refreshed\n"
    )
    with quereus_store.connect(path) as con:
        assert stale(con) == []
        con.execute("create materialized view late as select id from source")
        con.execute("alter table source drop column n")
    monkeypatch.setattr("sys.stdin", io.StringIO(".refresh\n"))
    assert main([path]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "main.late: refreshed" in told
    assert any(line.startswith("main.a_summary: failed: ") for line in told)
    assert main(["refresh", path]) == 1
