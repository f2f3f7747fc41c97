"""The ``quereus`` command as users run it: output, files and exit status, on a real database."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import quereus_store
from tests.cli.running import Run, rows_of

SCRIPT = """
create table crew (id integer primary key, nick text, rank integer null);
insert into crew values (1, 'Ann', 3), (2, 'Bo', null);
select nick from crew order by id;
"""


def test_a_script_from_the_command_line(run: Run) -> None:
    assert run("app.qdb", "-c", SCRIPT) == (0, "nick\nAnn\nBo\n", "")
    assert rows_of("app.qdb", "select count(*) from crew") == [(2,)]


def test_statements_and_shell_commands_in_turn(run: Run) -> None:
    assert run("app.qdb", "-c", SCRIPT, "-c", ".schema", "-c", "select count(*) as n from crew") == (
        0,
        "nick\nAnn\nBo\n"
        'CREATE TABLE "crew" ("id" INTEGER PRIMARY KEY, "nick" TEXT, "rank" INTEGER NULL);\n'
        "n\n2\n",
        "",
    )
    status, out, err = run("app.qdb", "-c", ".nothing", "-c", "select 1")
    assert (status, out, err) == (1, "", "error: unknown command .nothing; .help lists them\n")
    assert run("app.qdb", "-c", ".quit", "-c", "select 1") == (0, "", "")


def test_a_script_from_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "quereus_store.cli", str(tmp_path / "app.qdb")]
    text = SCRIPT + ".mode list\nselect id from crew where rank is null;\n.tables\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "nick\nAnn\nBo\n2\nmain|table|crew\n", "")


def test_a_piped_script_stops_at_its_first_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "quereus_store.cli"]
    text = "select 1 as a;\n\nselect\n  nothing;\nselect 2 as b;\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == "a\n1\n"
    assert done.stderr.splitlines() == [
        "error: Column not found: nothing",
        "  in standard input, line 4, column 3",
        "  4 |   nothing",
        "    |   ^",
    ]


def test_run_names_the_file_and_line_of_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("create table t (id integer primary key);\ninsert into t vales (1);\n")
    status, _out, err = run("run", "app.qdb", "s.sql")
    assert status == 1
    assert err.splitlines()[1:] == [
        "  in s.sql, line 2, column 15",
        "  2 | insert into t vales (1)",
        "    |               ^",
    ]


def test_run_refuses_a_script_that_is_not_utf8(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_bytes(b"select 1;\nselect '\xe9';\n")
    assert run("run", ":memory:", "s.sql") == (1, "", "error: s.sql: line 2: byte 0xe9 is not UTF-8\n")


@pytest.mark.parametrize(
    "words",
    [
        ("check", "missing.qdb"),
        ("dump", "missing.qdb"),
        ("export", "missing.qdb", "t", "t.csv"),
    ],
)
def test_reading_commands_make_no_file(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert run(*words) == (1, "", "error: missing.qdb: no such database file\n")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("just text, and long enough to be looked at\n" * 200)
    status, _out, err = run("notes.txt", "-c", "select 1;")
    assert status == 1
    assert err.startswith("error: ")
    assert "notes.txt" in err
    assert len(err.splitlines()) == 1


def test_import_creates_the_table_with_types_and_a_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "crew.csv").write_text("id,nick,rank,born\n1,Ann,3,1990-05-01\n2,Bo,,1991-06-02\n")
    status, out, _err = run("import", "app.qdb", "crew", "crew.csv")
    assert status == 0
    assert "2 rows into crew" in out
    assert rows_of("app.qdb", "select id, nick, rank, born from crew order by id") == [
        (1, "Ann", 3, "1990-05-01"),
        (2, "Bo", None, "1991-06-02"),
    ]
    assert rows_of("app.qdb", "select name, type, \"notnull\", pk from table_info('crew') order by cid") == [
        ("id", "INTEGER", 1, 1),
        ("nick", "TEXT", 1, 0),
        ("rank", "INTEGER", 0, 0),
        ("born", "DATE", 1, 0),
    ]


def test_import_numbers_rows_without_a_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\nx,1\nx,1\ny,2\n")
    assert run("import", "app.qdb", "t", "t.csv")[0] == 0
    assert rows_of("app.qdb", "select row_id, a, b from t order by row_id") == [
        (1, "x", 1),
        (2, "x", 1),
        (3, "y", 2),
    ]


def test_import_keeps_every_refused_row(run: Run, tmp_path: Path) -> None:
    run("app.qdb", "-c", "create table t (id integer primary key, n integer check (n > 0));")
    (tmp_path / "t.csv").write_text("id,n\n1,5\n2,-1\n1,7\n3,x\n4\n5,6\n")
    status, out, _err = run("import", "app.qdb", "t", "t.csv")
    assert status == 0
    assert out.splitlines()[:2] == ["2 rows into t", "4 rows rejected, see t.rejected.csv"]
    assert rows_of("app.qdb", "select id, n from t order by id") == [(1, 5), (5, 6)]
    assert (tmp_path / "t.rejected.csv").read_text().splitlines() == [
        "line,reason,id,n",
        "3,CHECK constraint failed: _check_n (n > 0),2,-1",
        "4,UNIQUE constraint failed: t PK.,1,7",
        "5,column 'n': 'x' is not INTEGER,3,x",
        '6,"1 fields, the header has 2",4',
    ]


def test_import_of_json_lines(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": 1, "tags": ["a"], "ok": true}\n{"id": 2, "ok": false}\n')
    assert run("import", "app.qdb", "t", "t.jsonl")[0] == 0
    assert rows_of("app.qdb", "select id, tags, ok from t order by id") == [
        (1, ["a"], True),
        (2, None, False),
    ]


def test_import_into_a_table_without_such_a_column(run: Run, tmp_path: Path) -> None:
    run("app.qdb", "-c", "create table t (id integer primary key);")
    (tmp_path / "t.csv").write_text("id,colour\n1,red\n")
    assert run("import", "app.qdb", "t", "t.csv") == (
        1,
        "",
        "error: table t has no column 'colour'; it has id\n",
    )


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "tsv"])
def test_what_is_exported_comes_back(run: Run, tmp_path: Path, suffix: str) -> None:
    run("app.qdb", "-c", "create table t (id integer primary key, note text null, x real, ok boolean);")
    run("app.qdb", "-c", "insert into t values (1, 'a, \"b\"\nc', 1.5, true), (2, null, -2.0, false);")
    assert run("export", "app.qdb", "t", f"t.{suffix}") == (0, f"2 rows to t.{suffix}\n", "")
    run("copy.qdb", "-c", "create table t (id integer primary key, note text null, x real, ok boolean);")
    assert run("import", "copy.qdb", "t", f"t.{suffix}")[0] == 0
    assert rows_of("copy.qdb", "select * from t order by id") == rows_of(
        "app.qdb", "select * from t order by id"
    )


def test_export_of_a_query(run: Run, tmp_path: Path) -> None:
    run("app.qdb", "-c", SCRIPT)
    assert run("export", "app.qdb", "select id, rank from crew order by id desc", "q.jsonl")[0] == 0
    lines = (tmp_path / "q.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"id": 2, "rank": None}, {"id": 1, "rank": 3}]


def test_a_dump_makes_the_same_database(run: Run, tmp_path: Path) -> None:
    run(
        "app.qdb",
        "-c",
        """
        create table crew (
            id integer primary key, nick text collate nocase, rank integer default 1 check (rank > 0)
        );
        create unique index crew_nick on crew (nick);
        create view high as select nick from crew where rank > 2;
        insert into crew values (1, 'it''s', 3), (2, 'two
lines', 1);
        create table v (id integer primary key, v any null);
        insert into v values (1, x'00ff'), (2, 3.0), (3, true), (4, null),
            (5, 123456789012345678901234567890);
        """,
    )
    status, dumped, _err = run("dump", "app.qdb")
    assert status == 0
    (tmp_path / "dump.sql").write_text(dumped)
    assert run("run", "copy.qdb", "dump.sql") == (0, "", "")
    assert run("dump", "copy.qdb") == (0, dumped, "")
    values = rows_of("copy.qdb", "select v from v order by id")
    assert repr(values) == repr([(b"\x00\xff",), (3.0,), (True,), (None,), (123456789012345678901234567890,)])


def test_a_dump_makes_views_after_those_they_read(run: Run, tmp_path: Path) -> None:
    run(
        "app.qdb",
        "-c",
        """
        create table t (id integer primary key, j json null);
        insert into t values (1, '{"a": [1, "x"]}'), (2, '"7"'), (3, null);
        create view z as select id from t;
        create view m as select id from z;
        create view a as select id from m;
        """,
    )
    _status, dumped, _err = run("dump", "app.qdb")
    (tmp_path / "dump.sql").write_text(dumped)
    assert run("run", "copy.qdb", "dump.sql", "--backend", "leveldb") == (0, "", "")
    assert rows_of("app.qdb", "select count(*) from a") == [(3,)]
    with quereus_store.connect("copy.qdb", backend="leveldb") as copy:
        assert copy.execute("select j from t order by id").fetchall() == [({"a": [1, "x"]},), ("7",), (None,)]
        assert copy.execute("select count(*) from a").fetchone() == (3,)


def test_check_says_what_is_in_order(run: Run) -> None:
    run("app.qdb", "-c", SCRIPT)
    assert run("check", "app.qdb") == (
        0,
        "storage: rows, keys, indexes and counts in order\n"
        "table crew: 2 rows, in order\n"
        "The database is in order.\n",
        "",
    )


def test_unknown_words_are_usage_errors(run: Run) -> None:
    with pytest.raises(SystemExit) as ended:
        run("export", "app.qdb")
    assert ended.value.code == 2


def test_an_unknown_kind_of_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.xls").write_text("a\n1\n")
    status, _out, err = run("import", "app.qdb", "t", "t.xls")
    assert (status, err.split(";")[0]) == (1, "error: t.xls: unknown kind of file")


def test_check_outlives_a_page_that_ends_the_process(run: Run, tmp_path: Path) -> None:
    run("app.qdb", "-c", "create table t (id integer primary key, v text);")
    with quereus_store.connect("app.qdb") as connection:
        connection.executemany("insert into t values (?, ?)", [(n, "x" * 90) for n in range(20_000)])
    content = (tmp_path / "app.qdb").read_bytes()
    page = content.index(b"x" * 90, len(content) // 2) // 4096
    (tmp_path / "app.qdb").write_bytes(content[: page * 4096] + bytes(4096) + content[(page + 1) * 4096 :])
    status, _out, err = run("check", "app.qdb")
    assert status == 1
    assert err.startswith("error: ")
    assert "damaged" in err
