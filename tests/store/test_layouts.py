"""ADD COLUMN with one value and DROP COLUMN leave the stored rows alone; rows old and new read alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store import Connection
from quereus_store.codec import row_decoder, row_encoder
from quereus_store.errors import Error, StatusCode
from quereus_store.schema.objects import RowLayout
from quereus_store.store.layouts import appended, laid_out_decoder, laid_out_encoder, retired
from quereus_store.store.module import StoreModule

ROWS = [(n, f"name {n}", n % 7, {"n": [n]}) for n in range(3000)]


@pytest.fixture(params=["lmdb", "leveldb"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    return tmp_path / "db", request.param


@pytest.fixture
def con(path: tuple[Path, str]) -> Iterator[Connection]:
    with open_(path) as connection:
        connection.execute(
            "create table t (id integer primary key, name text, n integer, doc json, unique (name))"
        )
        connection.execute("create index by_n on t (n)")
        connection.executemany("insert into t values (?, ?, ?, ?)", ROWS)
        yield connection


def open_(path: tuple[Path, str]) -> Connection:
    return quereus_store.connect(path[0], backend=path[1], synchronous="off")


def stored(con: Connection, table: str = "t") -> list[tuple[bytes, bytes]]:
    """The items of a table in the storage, as bytes."""
    schema = con.database.catalog.table("main", table)
    module = con.database.engine.module("store")
    assert schema is not None
    assert isinstance(module, StoreModule)
    rows = module.table(schema).rows
    with module.backend.read() as kv:
        return [item for batch in kv.scan(rows.prefix, rows.end) for item in batch]


def test_no_row_is_rewritten(con: Connection) -> None:
    before = stored(con)
    con.execute("alter table t add column x integer default 7")
    assert con.execute("select * from t").fetchall() == [(*row, 7) for row in ROWS]
    con.execute("alter table t add column y text null")
    con.execute("alter table t drop column name")
    con.execute("alter table t add column doc2 json default '[1]'")
    con.execute("alter table t drop column y")
    assert stored(con) == before
    assert con.execute("select * from t where id = 5").fetchall() == [(5, 5, {"n": [5]}, 7, [1])]
    assert con.execute("select * from t where n = 3 and id < 9").fetchall() == [(3, 3, {"n": [3]}, 7, [1])]
    assert con.database.check() == []


def test_any_other_default_rewrites(con: Connection) -> None:
    before = stored(con)
    con.execute("alter table t add column x integer default (new.n + 1)")
    assert [value for _, value in stored(con)] != [value for _, value in before]
    assert con.execute("select x from t where id = 5").fetchall() == [(6,)]


def test_a_later_default_changes_no_row_that_is_there(con: Connection) -> None:
    con.execute("alter table t add column x integer default 7")
    con.execute("alter table t alter column x set default 8")
    con.execute("insert into t (id, name, n, doc) values (5000, 'new', 1, '{}')")
    assert con.execute("select distinct x from t where id < 5000").fetchall() == [(7,)]
    assert con.execute("select x from t where id = 5000").fetchall() == [(8,)]


def test_it_lasts(con: Connection, path: tuple[Path, str]) -> None:
    con.execute("alter table t add column x json default '{\"a\": [1, 2.0]}'")
    con.execute("alter table t drop column name")
    con.execute("update t set n = 100 where id = 1")
    con.execute("insert into t (id, n, doc, x) values (5000, 1, '1', '2')")
    con.close()
    with open_(path) as again:
        found = again.execute("select * from t where id in (0, 1, 5000)").fetchall()
        assert found == [
            (0, 0, {"n": [0]}, {"a": [1, 2.0]}),
            (1, 100, {"n": [1]}, {"a": [1, 2.0]}),
            (5000, 1, 1, 2),
        ]
        assert again.database.check() == []
        # Another key needs another order of rows: they are written as columns again.
        again.execute("alter table t alter primary key (n, id)")
        schema = again.database.catalog.table("main", "t")
        assert schema is not None
        assert schema.layout is None
        assert again.execute("select count(*) from t where n = 1").fetchone() == (429,)
        assert again.database.check() == []


def test_a_table_without_rows_has_no_layout(con: Connection) -> None:
    con.execute("delete from t")
    con.execute("alter table t add column x integer default 7")
    con.execute("alter table t drop column name")
    schema = con.database.catalog.table("main", "t")
    assert schema is not None
    assert schema.layout is None


def test_what_is_undone_is_undone_in_the_old_shape(con: Connection) -> None:
    """An undo must not put rows back in the shape that the undone ALTER gave them."""
    before = stored(con)
    con.execute("begin")
    con.execute("savepoint s")
    con.execute("alter table t add column x integer default 7")
    con.execute("update t set n = n + 1, x = id")
    con.execute("delete from t where id < 1000")
    con.execute("alter table t drop column doc")
    con.execute("update t set n = n + 1 where id > 2000")
    con.execute("insert into t (id, name, n, x) values (9000, 'q', 1, 1)")
    assert con.execute("select * from t where id = 2500").fetchall() == [(2500, "name 2500", 3, 2500)]
    con.execute("rollback to s")
    assert con.execute("select * from t").fetchall() == ROWS
    con.execute("update t set n = n where id = 1")
    con.execute("commit")
    assert con.execute("select * from t").fetchall() == ROWS
    assert stored(con) == before
    assert con.database.check() == []


def test_an_older_snapshot_reads_what_it_always_read(con: Connection, path: tuple[Path, str]) -> None:
    with quereus_store.connect(path[0], backend=path[1], synchronous="off") as reader:
        reader.execute("begin")
        assert reader.execute("select count(*) from t").fetchone() == (3000,)
        con.execute("alter table t add column x integer default 7")
        con.execute("update t set x = 1 where id = 1")
        con.execute("alter table t drop column n")
        assert reader.execute("select * from t").fetchall() == ROWS
        reader.execute("commit")
        assert len(reader.execute("select * from t where id = 1").fetchall()[0]) == 4


def test_a_row_that_no_layout_allows_is_damaged(con: Connection) -> None:
    con.execute("alter table t add column x integer default 7")
    module = con.database.engine.module("store")
    assert isinstance(module, StoreModule)
    key, _ = stored(con)[3]
    encode, _ = row_encoder()
    for row in ((3, "x", 3), (3, "x", 3, 4, 5, 6)):
        with module.backend.write() as kv:
            kv.put(key, encode(row))
            kv.commit()
        with pytest.raises(Error, match=r"the row of table main\.t with key") as caught:
            con.execute("select * from t where id = 3").fetchall()
        assert caught.value.code is StatusCode.CORRUPT
        assert any("is corrupt" in found.what for found in con.database.check())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 9), st.none()), max_size=8), st.data())
def test_rows_of_every_age_read_alike(changes: list[int | None], data: st.DataObject) -> None:
    """Columns come (None) and go; after each change a row is written, and all read as the model says."""
    encode, encode_many = row_encoder()
    decode, decode_many = row_decoder(has_documents=False)
    layout: RowLayout | None = None
    model: list[tuple[Any, ...]] = [(0, "a", 1.5)]
    values = [encode(model[0])]
    for number, change in enumerate(changes):
        width = len(model[0])
        if change is None:
            layout = appended(layout, width, number)
            model = [(*row, number) for row in model]
        elif width > 1:
            position = change % width
            layout = retired(layout, width, position)
            model = [row[:position] + row[position + 1 :] for row in model]
        row = tuple(data.draw(st.tuples(*[st.integers(0, 9)] * len(model[0]))))
        one, many = (encode, encode_many) if layout is None else laid_out_encoder(layout, encode, encode_many)
        assert many([row]) == [one(row)]
        values.append(one(row))
        model.append(row)
        if layout is not None:
            read, read_many = laid_out_decoder(layout, decode, decode_many)
            assert [read(value) for value in values] == model
            assert read_many(values) == model
