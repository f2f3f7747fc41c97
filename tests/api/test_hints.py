"""Hints: what the note of an error tells those who come from another database."""

from __future__ import annotations

import datetime
import decimal
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store.errors import Error

SCHEMA = """
create table crew (id integer primary key, nick text, rank integer null);
create table trip (id integer primary key, crew_id integer references crew (id), town text);
"""


@pytest.fixture(name="con")
def connection() -> Any:
    with quereus_store.connect(":memory:") as con:
        con.executescript(SCHEMA)
        yield con


def hint_of(con: quereus_store.Connection, sql: str, parameters: Any = ()) -> str:
    with pytest.raises(Error) as caught:
        con.execute(sql, parameters)
    notes = getattr(caught.value, "__notes__", [])
    assert all(note.startswith("hint: ") for note in notes)
    assert not any(note in str(caught.value) for note in notes)
    return "".join(note.removeprefix("hint: ") for note in notes)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("select nik from crew", "did you mean nick?"),
        ("select c.nik from crew c", "did you mean nick?"),
        ("update crew set nik = 'x'", "did you mean nick?"),
        ("select * from crw", "did you mean crew?"),
        ("select uper(nick) from crew", "did you mean upper?"),
        ("selct * from crew", "did you mean select?"),
        ("select * form crew", "did you mean from?"),
        ("select substr() + abs(1, 2)", "abs takes 1 arguments"),
        ("select * from table_info", "table_info is a function of rows: write table_info(…)"),
        ('select * from crew where nick = "Ann"', "a text has single ones: 'Ann'"),
        ("select rank * 2 as twice from crew where twice > 2", "WHERE comes before the select list"),
    ],
)
def test_names_are_compared_with_those_that_are_there(
    con: quereus_store.Connection, sql: str, hint: str
) -> None:
    assert hint in hint_of(con, sql)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("create table t (id integer primary key) without rowid", "leave it out"),
        ("create table t (id integer primary key autoincrement)", "mutation_ordinal()"),
        ("create temp table t (id integer)", "create table temp.name"),
        ("create trigger t after insert on crew begin select 1; end", "materialized views"),
        ("pragma table_info(crew)", "select * from table_info('name')"),
        ("pragma table_info", "select * from table_info('name')"),
        ("pragma user_version = 3", "declared schemas"),
        ("select name from sqlite_master", "select * from schema()"),
        ("select * from information_schema.tables", "select * from schema()"),
        ("select rowid from crew", "RETURNING"),
        ("select last_insert_rowid()", "returning id"),
        ("select max(1, 2)", "greatest(a, b)"),
        ("select '1'::integer", "cast(x as type)"),
        ("delete from crew order by id limit 1", "where id in"),
        ("update crew set nick = 'x' limit 1", "where id in"),
        ("vacuum", "backup"),
        ("describe crew", "table_info('name')"),
        ("create table t (id integer primary key, at datetime default (datetime('now')))", "bind the value"),
    ],
)
def test_other_databases_words_are_translated(con: quereus_store.Connection, sql: str, hint: str) -> None:
    assert hint in hint_of(con, sql)


def test_refused_rows(con: quereus_store.Connection) -> None:
    numbering = hint_of(con, "insert into crew (nick) values ('Ann')")
    assert "default (coalesce((select max(id) from crew), 0) + mutation_ordinal())" in numbering
    assert (
        hint_of(con, "insert into crew (id) values (1)")
        == "a column takes NULL if it is declared so: nick … null"
    )
    assert (
        hint_of(con, "insert into trip values (1, 9, 'Bern')")
        == "a foreign key: crew has no row for crew_id = 9"
    )
    con.execute("insert into crew values (1, 'Ann', 3)")
    assert "DEFAULT" in hint_of(con, "alter table crew add column phone text")
    assert hint_of(con, "insert into crew values (1, 'Ann', 3)") == ""


def test_values_that_are_refused(con: quereus_store.Connection) -> None:
    assert hint_of(con, "select ?", [datetime.date(2024, 1, 2)]) == "bind value.isoformat()"
    assert hint_of(con, "select :p", {"p": decimal.Decimal(1)}).startswith("bind str(value)")
    assert "(value,)" in hint_of(con, "select ?", "text")
    with pytest.raises(Error) as caught:
        con.executemany("insert into crew values (?, ?, ?)", [(1, datetime.date(2024, 1, 2), None)])
    assert caught.value.__notes__ == ["hint: bind value.isoformat()"]


def test_a_hint_never_stands_in_the_way_of_its_error(
    con: quereus_store.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quereus_store.api.hints.get_close_matches", None)
    with pytest.raises(Error, match="Column not found: nik"):
        con.execute("select nik from crew")


def test_hints_for_later_lines_and_scripts(con: quereus_store.Connection) -> None:
    with pytest.raises(Error) as caught:
        con.executescript("select 1;\nselect *\nform crew;")
    assert caught.value.__notes__ == ["hint: did you mean from?"]
    assert pickle.loads(pickle.dumps(caught.value)).__notes__ == caught.value.__notes__


def test_files_of_other_databases(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as old:
        old.execute("create table t (id integer primary key)")
    before = path.read_bytes()
    with pytest.raises(Error) as caught:
        quereus_store.connect(path)
    assert caught.value.__notes__ == [
        "hint: it is a SQLite file; quereus import loads tables from CSV, JSON and Parquet files"
    ]
    assert path.read_bytes() == before
    path.write_bytes(b"PAR1" + bytes(5000))
    with pytest.raises(Error) as caught:
        quereus_store.connect(path)
    assert caught.value.__notes__[0].startswith("hint: it is a Parquet file; quereus import ")
    path.write_bytes(b"neither")
    with pytest.raises(Error) as caught:
        quereus_store.connect(path)
    assert not hasattr(caught.value, "__notes__")


def test_the_translated_words_work(con: quereus_store.Connection) -> None:
    """What the hints advise is no syntax error itself."""
    con.executescript("""
        create table temp.t (
          id integer primary key default (coalesce((select max(id) from temp.t), 0) + mutation_ordinal()),
          d date);
        insert into temp.t (d) values ('2024-05-06') returning id;
        select * from schema(); select * from table_info('t'); select * from index_info('t');
        select epoch_s(d), date(d, 'start of month'), extract(year from d), strftime('%Y-%m', d) from temp.t;
        select julianday('2024-05-07') - julianday(d), d + interval '3' day, instr(d, '5') > 0 from temp.t;
        select greatest(1, 2), least(1, 2), iif(true, 1, 2), json_group_array(d),
          count(*) filter (where true),
          'a' regexp 'a', current_timestamp, current_date from temp.t;
        select id from temp.t qualify row_number() over (order by d desc) = 1;
    """)
