"""Parameters, rows in every shape, and the cache of prepared statements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.execute import preparing

# --- parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "parameters", "row"),
    [
        ("select nick from crew where id = ?", (2,), ("Bo",)),
        ("select nick from crew where id = ?", [2], ("Bo",)),
        ("select nick from crew where id = :id", {"id": 2}, ("Bo",)),
        ("select nick from crew where id = $id", {"id": 2}, ("Bo",)),
        ("select nick from crew where id = :1", (2,), ("Bo",)),
        ("select ?, ? || ?", (1, "a", "b"), (1, "ab")),
        ("select :2, :1, :2", ("a", "b"), ("b", "a", "b")),
        ("select :x + :x, :y", {"y": None, "x": 4}, (8, None)),
        ("select ?, ?, ?, ?", (2**70, -0.5, b"\0\xff", True), (2**70, -0.5, b"\0\xff", True)),
        ("select ?, ?", ({"a": [1, None]}, ["x"]), ({"a": [1, None]}, ["x"])),
        ("select ?", ("it's; -- no comment",), ("it's; -- no comment",)),
    ],
)
def test_parameters(sql: str, parameters: Any, row: tuple[Any, ...], con: Connection) -> None:
    assert repr(con.execute(sql, parameters).fetchone()) == repr(row)


def test_one_text_serves_parameters_of_every_type(con: Connection) -> None:
    for value in (1, "1", None, 1.5, b"1", True, 1, "x", [1]):
        assert con.execute("select ?, typeof(?)", (value, value)).fetchone()[0] == value
    counts = [
        con.execute("select count(*) from crew where id = ?", (v,)).fetchone() for v in (1, None, 1.5, 3.0)
    ]
    assert counts == [(1,), (0,), (0,), (1,)]


def test_many_sets(con: Connection) -> None:
    sets = ({"id": number, "nick": f"n{number}"} for number in range(10, 13))
    cursor = con.executemany("insert into crew (id, nick) values (:id, :nick)", sets)
    assert cursor.rowcount == 3
    con.executemany("update crew set rank = ? where id = ?", [(7, 10), (8, 11)])
    con.executemany("delete from crew where id = ?", [(12,), (99,)])
    assert con.execute("select * from crew where id > 9 order by id").fetchall() == [
        (10, "n10", 7),
        (11, "n11", 8),
    ]
    assert con.executemany("insert into crew values (?, ?, ?)", []).rowcount == 0


def test_a_script_runs_every_statement(con: Connection) -> None:
    con.executescript("insert into crew values (4, 'a;b', 1); -- ; \n delete from crew where id = 1;;")
    assert con.execute("select id, nick from crew order by id").fetchall() == [
        (2, "Bo"),
        (3, "Cy"),
        (4, "a;b"),
    ]


# --- rows -------------------------------------------------------------------------------------------------


def test_a_row_is_read_by_position_and_by_name(con: Connection) -> None:
    con.row_factory = quereus_store.Row
    row = con.execute("select id, nick as Name, rank from crew order by id").fetchone()
    assert (row[0], row[-1], row[:2], row["name"], row["NAME"]) == (1, 3, (1, "Ann"), "Ann", "Ann")
    assert (list(row), len(row), row.keys()) == ([1, "Ann", 3], 3, ["id", "Name", "rank"])
    assert row == (1, "Ann", 3)
    assert repr(row) == "Row(id=1, Name='Ann', rank=3)"
    assert hash(row) == hash(con.execute("select id, nick as Name, rank from crew where id = 1").fetchone())
    with pytest.raises(IndexError, match="no column named 'pay' in the row"):
        row["pay"]


def test_row_factories(con: Connection) -> None:
    """The connection's holds for its new cursors, the cursor's for itself; every way to fetch uses it."""
    con.row_factory = quereus_store.dict_row
    sql = "select id, nick from crew order by id"
    dicts = [{"id": 1, "nick": "Ann"}, {"id": 2, "nick": "Bo"}, {"id": 3, "nick": "Cy"}]
    assert con.execute(sql).fetchall() == dicts
    assert con.execute(sql).fetchone() == dicts[0]
    assert con.execute(sql).fetchmany(2) == dicts[:2]
    assert list(con.execute(sql)) == dicts
    assert [row for batch in con.execute(sql).fetch_batches() for row in batch] == dicts
    assert con.execute("delete from crew where id = 3 returning nick").fetchall() == [{"nick": "Cy"}]
    cursor = con.cursor()
    cursor.row_factory = lambda cursor, values: "/".join(map(str, values))
    assert cursor.execute(sql).fetchall() == ["1/Ann", "2/Bo"]
    con.row_factory = None
    assert con.execute(sql).fetchone() == (1, "Ann")


def test_batches_are_lists_of_about_a_thousand(con: Connection) -> None:
    con.executemany("insert into crew values (?, 'x', null)", [(number,) for number in range(10, 5000)])
    batches = list(con.execute("select id from crew order by id").fetch_batches())
    assert [row for batch in batches for row in batch] == [(n,) for n in (1, 2, 3, *range(10, 5000))]
    assert 3 <= len(batches) <= 20


def test_arrow(con: Connection) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = con.execute("select id, nick, rank from crew order by id").arrow()
    assert table.schema.types == [pyarrow.int64(), pyarrow.string(), pyarrow.int64()]
    assert table.to_pydict() == {"id": [1, 2, 3], "nick": ["Ann", "Bo", "Cy"], "rank": [3, None, 1]}
    assert con.execute("select id from crew where false").arrow().num_rows == 0
    # Integers of any size are text where Arrow has no number for them.
    assert con.execute("select ? as n", (2**70,)).arrow().to_pydict() == {"n": [str(2**70)]}


def test_data_frames(con: Connection) -> None:
    pytest.importorskip("pandas")
    frame = con.execute("select id, nick from crew order by id").df()
    assert frame.to_dict("list") == {"id": [1, 2, 3], "nick": ["Ann", "Bo", "Cy"]}


# --- prepared statements ------------------------------------------------------------------------------------


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is planned from here on: ``query`` or ``change``."""
    seen: list[str] = []
    for name, word in (("prepare_query", "query"), ("prepare_mutation", "change")):
        real = getattr(preparing, name)

        def spy(*arguments: Any, _real: Any = real, _word: str = word, **options: Any) -> Any:
            seen.append(_word)
            return _real(*arguments, **options)

        monkeypatch.setattr(preparing, name, spy)
    return seen


def test_a_statement_is_planned_once(con: Connection, planned: list[str]) -> None:
    for number in (1, 2, 3):
        con.execute("select nick from crew where id = ?", (number,)).fetchone()
        con.execute("update crew set rank = ? where id = ?", (number, number))
    assert planned == ["query", "change"]


def test_and_anew_when_types_or_the_schema_change(con: Connection, planned: list[str]) -> None:
    sql = "select * from crew where id = ?"
    con.execute(sql, (1,)).fetchone()
    con.execute(sql, ("1",)).fetchone()
    assert planned == ["query"] * 2
    con.execute("alter table crew add column pay integer default 5")
    planned.clear()
    assert con.execute(sql, (1,)).fetchone() == (1, "Ann", 3, 5)
    assert con.execute(sql, (2,)).fetchone() == (2, "Bo", None, 5)
    assert planned == ["query"]
    con.execute("drop table crew")
    with pytest.raises(quereus_store.ProgrammingError, match="Table 'crew' not found"):
        con.execute(sql, (1,))


def test_only_so_many_are_kept(tmp_path: Path, planned: list[str]) -> None:
    for kept, expected in ((2, 3 + 0), (1, 4), (0, 6)):
        with quereus_store.connect(":memory:", cached_statements=kept) as con:
            planned.clear()
            for text in ("select 1", "select 1", "select 2", "select 2", "select 3", "select 3"):
                con.execute(text).fetchall()
            if kept == 1:
                con.execute("select 1").fetchall()
        assert len(planned) == expected


def test_the_one_that_was_used_longest_ago_goes(planned: list[str]) -> None:
    with quereus_store.connect(":memory:", cached_statements=2) as con:
        for text in ("select 1", "select 2", "select 1", "select 3"):
            con.execute(text).fetchall()
        planned.clear()
        con.execute("select 1").fetchall()
        assert planned == []
        con.execute("select 2").fetchall()
        assert planned == ["query"]


def test_the_generated_program_is_shown(con: Connection) -> None:
    """It is Python that compiles, with the condition written into its loop."""
    lines = [line for (line,) in con.execute("explain code select nick from crew where rank > 1 and id <> 7")]
    code = "\n".join(lines)
    compile(code, "shown", "exec")
    assert "def program(rt):" in lines
    (loop,) = [line for line in lines if " for r0 in " in line and " if " in line]
    assert "r0[2] > 1" in loop or "1 < r0[2]" in loop


# --- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "kind", "code", "place"),
    [
        ("select nick\nfrom crow", quereus_store.ProgrammingError, "NOTFOUND", (2, 6)),
        ("select nik from crew", quereus_store.ProgrammingError, "ERROR", (1, 8)),
        ("selec 1", quereus_store.ProgrammingError, "ERROR", (1, 1)),
        ("select (1", quereus_store.ProgrammingError, "ERROR", (1, 8)),
        ("insert into crew values (1, 'x', 1)", quereus_store.IntegrityError, "CONSTRAINT", (1, 1)),
        ("insert into crew values ('x', 'x', 1)", quereus_store.DataError, "MISMATCH", (1, 1)),
    ],
)
def test_an_error_has_a_code_and_a_place(
    sql: str, kind: type[quereus_store.Error], code: str, place: tuple[int, int], con: Connection
) -> None:
    with pytest.raises(quereus_store.Error) as caught:
        con.execute(sql)
    error = caught.value
    assert (type(error), error.code.name) == (kind, code)
    assert (error.line, error.column) == place
    if kind is quereus_store.ProgrammingError:
        assert str(error).endswith("(at line {}, column {})".format(*place))


@pytest.mark.parametrize(
    ("sql", "name", "column"),
    [
        ("explain query plan create table t (id integer primary key)", "EXPLAIN CREATE TABLE T", 20),
        ("explain code begin", "EXPLAIN BEGIN", 14),
        ("explain analyze drop table crew", "EXPLAIN ANALYZE DROP TABLE CREW", 17),
    ],
)
def test_what_is_not_built_is_named(sql: str, name: str, column: int, con: Connection) -> None:
    with pytest.raises(quereus_store.NotSupportedError) as caught:
        con.execute(sql)
    assert caught.value.code.name == "UNSUPPORTED"
    assert str(caught.value) == f"{name} is not supported yet (at line 1, column {column})"
    assert con.execute("select count(*) from crew").fetchone() == (3,)
