"""Parquet: what is exported comes back with its types, and what other programs write finds its place."""

import datetime
import io
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.cli.main import main
from quereus_store.cli.transfer import parquet_writer
from quereus_store.cli.transfer.exporter import export_file
from quereus_store.cli.transfer.importer import import_file
from quereus_store.cli.transfer.parquet_source import ParquetSource
from tests.cli.running import Run, rows_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = "select name, type, \"notnull\", pk from table_info('t') order by cid"

ALL_TYPES = """
create table t (
    id integer, part text, x real null, n numeric null, ok boolean null, b blob null, j json null, v any null,
    day date null, at datetime null, clock time null, span timespan null, primary key (part, id)
);
insert into t values
    (1, 'a', 1.5, 3, true, x'00ff', '{"a": [1, null, 1.0]}', 'text', '2013-01-31', '2013-01-31 05:00',
     '05:00', 'PT1H'),
    (123456789012345678901234567890, 'b', nan(), 3.0, false, x'', '"7"', 7, null,
     '2013-01-31 05:00:00.123456', null, null),
    (3, 'c', null, null, null, null, null, null, null, null, null, null),
    (4, 'd', 1e400, 2.5, null, null, '[]', x'01', null, null, null, '-PT1.5S'),
    (5, 'e', -0.0, -1, null, null, null, json('{"blob": "00"}'), null, null, null, null),
    (6, 'f', 0, 0, null, null, null, false, null, null, null, null);
"""


def test_a_table_comes_back_with_rows_types_and_key(run: Run) -> None:
    assert run("app.qdb", "-c", ALL_TYPES)[0] == 0
    assert run("export", "app.qdb", "t", "t.parquet") == (0, "6 rows to t.parquet\n", "")
    status, said, errors = run("import", "copy.qdb", "t", "t.parquet")
    assert (status, said.splitlines()[-1], errors) == (0, "6 rows into t", "")
    assert rows_of("copy.qdb", COLUMNS) == rows_of("app.qdb", COLUMNS)
    # repr tells 3 from 3.0 and finds NaN equal to itself.
    rows = "select * from t order by part"
    assert repr(rows_of("copy.qdb", rows)) == repr(rows_of("app.qdb", rows))


def test_columns_have_the_types_of_arrow_results(run: Run) -> None:
    run(
        "app.qdb",
        "-c",
        "create table t (id integer primary key, x real, s text, ok boolean, b blob, j json);",
    )
    run("app.qdb", "-c", "insert into t values (1, 2.0, 'a', true, x'01', '[1]');")
    run("export", "app.qdb", "t", "t.parquet")
    with quereus_store.connect("app.qdb") as connection:
        table = connection.execute("select * from t").arrow()
    written = pq.read_table("t.parquet")
    assert written.schema.types == table.schema.types
    assert written.column("s").to_pylist() == ["a"]


@given(st.lists(st.one_of(
    st.none(), st.integers(), st.floats(), st.text(st.characters(exclude_categories=())), st.binary(),
    st.booleans(),
    st.dictionaries(st.text(), st.integers(), max_size=2),
), max_size=8))  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_values_of_any_kinds_come_back(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    path = tmp_path_factory.mktemp("any") / "t.parquet"
    with quereus_store.connect(":memory:") as connection:
        connection.execute("create table t (id integer primary key, v any null)")
        connection.executemany("insert into t values (?, ?)", list(enumerate(values)))
        export_file(connection, "t", path)
        import_file(connection, "u", path)
        rows = connection.execute("select * from u order by id").fetchall()
        assert repr(rows) == repr(connection.execute("select * from t order by id").fetchall())


def test_rows_stream_in_groups(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writer, "_ROWS_A_GROUP", 4000)
    sql = """
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 9000)
        select i, i % 2 = 1 as odd from n
    """
    assert run("export", ":memory:", sql, "n.parquet") == (0, "9,000 rows to n.parquet\n", "")
    file = pq.ParquetFile("n.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [4000, 4000, 1000]
    parts = [(done, len(batch.rows)) for done, batch in ParquetSource(Path("n.parquet")).batches()]
    assert parts[-1][0] == 9000
    assert max(rows for _done, rows in parts) <= 2000


def test_types_of_other_programs(run: Run) -> None:
    noon = datetime.datetime(2020, 5, 1, 12, 0, 0, 123456)
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int8()),
            "u": pa.array([2**64 - 1, 0], pa.uint64()),
            "f": pa.array([0.5, None], pa.float32()),
            "price": pa.array([Decimal("19.99"), None], pa.decimal128(38, 2)),
            "exact": pa.array([Decimal("1234567890123456.78"), None], pa.decimal128(38, 2)),
            "whole": pa.array([Decimal(10**30), None], pa.decimal128(38, 0)),
            "day": pa.array([noon.date(), None]),
            "clock": pa.array([noon.time(), None]),
            "at": pa.array([noon, None], pa.timestamp("us")),
            "zoned": pa.array([noon, None], pa.timestamp("ns", "Europe/Paris")),
            "span": pa.array([-datetime.timedelta(seconds=90), None]),
            "l": pa.array([[Decimal("1.5")], None]),
            "s": pa.array([{"a": noon.date(), "b": b"\x01"}, None]),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "word": pa.array(["x", None]).dictionary_encode(),
            "fixed": pa.array([b"ab", None], pa.binary(2)),
            "nothing": pa.array([None, None], pa.null()),
        }
    )
    pq.write_table(table, "other.parquet")
    assert run("import", "app.qdb", "t", "other.parquet")[0] == 0
    assert dict(rows_of("app.qdb", "select name, type from table_info('t')")) == {
        "id": "INTEGER", "u": "INTEGER", "f": "REAL", "price": "NUMERIC", "exact": "TEXT", "whole": "INTEGER",
        "day": "DATE", "clock": "TIME", "at": "DATETIME", "zoned": "DATETIME", "span": "TIMESPAN",
        "l": "JSON", "s": "JSON", "m": "JSON", "word": "TEXT", "fixed": "BLOB", "nothing": "TEXT",
    }  # fmt: skip
    assert rows_of("app.qdb", "select * from t where id = 1") == [
        (1, 2**64 - 1, 0.5, 19.99, "1234567890123456.78", 10**30, "2020-05-01", "12:00:00.123456",
         "2020-05-01T12:00:00.123456", "2020-05-01T12:00:00.123456", "-PT90S", [1.5],
         {"a": "2020-05-01", "b": "x'01'"}, {"k": 1}, "x", b"ab", None)
    ]  # fmt: skip
    assert rows_of("app.qdb", "select pk, \"notnull\" from table_info('t') where name in ('id', 'f')") == [
        (1, 1),
        (0, 0),
    ]


def test_refused_rows_are_kept_by_number(run: Run, tmp_path: Path) -> None:
    run("app.qdb", "-c", "create table t (id integer primary key, n integer check (n > 0));")
    pq.write_table(pa.table({"id": [1, 2], "n": [5, -1]}), "t.parquet")
    status, said, _errors = run("import", "app.qdb", "t", "t.parquet")
    assert status == 0
    assert "1 rows rejected, see t.rejected.jsonl\n  row 2: CHECK constraint failed" in said
    assert '"row": [2, -1]' in (tmp_path / "t.rejected.jsonl").read_text()


def test_a_damaged_file_changes_nothing(run: Run, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"id": list(range(20_000))}), "t.parquet", row_group_size=4000, use_dictionary=False
    )
    whole = (tmp_path / "t.parquet").read_bytes()
    middle = len(whole) // 2
    (tmp_path / "hole.parquet").write_bytes(whole[:middle] + b"\xff" * 4000 + whole[middle + 4000 :])
    (tmp_path / "cut.parquet").write_bytes(whole[:middle])
    (tmp_path / "csv.parquet").write_text("id\n1\n")
    run("app.qdb", "-c", "create table t (id integer primary key); insert into t values (-1);")
    for name in ("hole", "cut", "csv"):
        status, said, errors = run("import", "app.qdb", "t", f"{name}.parquet")
        assert (status, said) == (1, "")
        assert errors.startswith(f"error: {name}.parquet: cannot be read as a Parquet file: ")
    assert rows_of("app.qdb", "select * from t") == [(-1,)]
    assert run("import", "app.qdb", "new", "hole.parquet")[0] == 1
    assert rows_of("app.qdb", "select count(*) from schema() where name = 'new'") == [(0,)]


def test_names_that_stand_twice(run: Run) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "A"]), "t.parquet")
    assert (
        run("import", "app.qdb", "t", "t.parquet")[2]
        == "error: t.parquet: column 'A' stands twice in the file\n"
    )


def test_a_query_without_a_table(run: Run) -> None:
    sql = "select json('[1]') as j, 1 as id, 'x' as v union all select null, 2, 3"
    assert run("export", ":memory:", sql, "q.parquet") == (0, "2 rows to q.parquet\n", "")
    assert run("import", "app.qdb", "t", "q.parquet")[0] == 0
    assert rows_of("app.qdb", "select id, j, v from t order by id") == [(1, [1], "x"), (2, None, 3)]
    assert rows_of("app.qdb", "select name, \"notnull\", pk from table_info('t')") == [
        ("j", 0, 0),
        ("id", 1, 1),
        ("v", 1, 0),
    ]
    run(
        "app.qdb",
        "-c",
        "create view none as select 1 as a where false; create table e (id integer primary key);",
    )
    for source, columns in (("none", [("row_id",), ("a",)]), ("e", [("id",)])):
        assert run("export", "app.qdb", source, f"{source}.parquet")[1].startswith("0 rows")
        assert run("import", "copy.qdb", source, f"{source}.parquet")[0] == 0
        assert rows_of("copy.qdb", f"select name from table_info('{source}')") == columns
    assert run("export", "app.qdb", "nope", "n.parquet")[2].startswith("error: Table 'nope' not found")


@pytest.mark.parametrize("note", [b"integer check (a > 5)", b"integer); --", b"\xff", b""])
def test_notes_that_are_not_ours_are_passed_over(run: Run, note: bytes) -> None:
    field = pa.field("a", pa.int64(), metadata={b"quereus:type": note, b"quereus:encoding": b"mixed"})
    for key in (b'["b"]', b'"a"', b"[1]", b"{", b""):
        table = pa.table([[1]], pa.schema([field], metadata={b"quereus:key": key}))
        pq.write_table(table, "t.parquet")
        assert run("import", ":memory:", "t", "t.parquet")[0] == 0
    assert run("import", "app.qdb", "t", "t.parquet")[1].startswith(
        'create table "t" ("row_id" integer, "a" integer,'
    )


@pytest.mark.parametrize("text", ['{"x": 1}', "[1]", "{", '{"blob": 1}', '{"blob": "0"}'])
def test_a_mixed_column_that_was_tampered_with(run: Run, text: str) -> None:
    field = pa.field("a", pa.string(), metadata={b"quereus:type": b"ANY", b"quereus:encoding": b"mixed"})
    pq.write_table(pa.table([[text]], pa.schema([field])), "t.parquet")
    status, said, errors = run("import", "app.qdb", "t", "t.parquet")
    assert (status, said) == (1, "")
    assert errors.startswith("error: t.parquet: cannot be read as a Parquet file: ")


def test_without_pyarrow_the_extra_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    said = "error: Parquet files need the package pyarrow: pip install 'quereus-store[arrow]'\n"
    assert run("import", "app.qdb", "t", "t.parquet") == (1, "", said)
    assert run("export", ":memory:", "select 1 as a", "u.parquet") == (1, "", said)
    assert not (tmp_path / "u.parquet").exists()


def test_parquet_through_standard_streams(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    status = main(["export", ":memory:", "select 1 as id, 'x' as s", "-", "--format", "parquet"])
    written, said = capfdbinary.readouterr()
    assert (status, said) == (0, b"1 rows\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written)))
    assert main(["import", "app.qdb", "t", "-", "--format", "parquet"]) == 0
    assert rows_of("app.qdb", "select id, s from t") == [(1, "x")]
