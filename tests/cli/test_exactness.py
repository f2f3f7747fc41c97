"""What goes out comes back: values at the edge of what files can spell, and files at the edge of use."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

import quereus_store
from tests.cli.running import Run

NOT_A_NUMBER, INFINITE = float("nan"), float("inf")
VALUES = [
    "",
    "it's; -- no 'comment'",
    "a\0b\r\n\tc",
    "x\ud800y\udfff",
    "\udc00",
    "😀 e\u0301 \u2028",
    "NaN",
    0,
    -(10**5000),
    2**63,
    -0.0,
    5e-324,
    1e308,
    INFINITE,
    -INFINITE,
    NOT_A_NUMBER,
    True,
    False,
    b"",
    b"\x00\xff'",
    [],
    [1, 1.0, True, None, "x\ud800", "é", {"k'": [INFINITE, -INFINITE]}],
    {"": {}, "big": 10**5000},
]


def shown(value: object) -> tuple[str, str]:
    """A value with its type, NaN equal to itself and -0.0 other than 0.0."""
    if isinstance(value, int) and abs(value) > 2**64:
        return "int", hex(value)
    if isinstance(value, dict):
        return "dict", str({key: shown(item) for key, item in value.items()})
    if isinstance(value, list):
        return "list", str(list(map(shown, value)))
    return type(value).__name__, repr(value)


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_a_dump_gives_every_value_back(run: Run, backend: str, tmp_path: Path) -> None:
    with quereus_store.connect("old", backend=backend) as connection:
        connection.execute("create table v (id integer primary key, a any null, r real null, j json null)")
        rows = [
            (
                number,
                value,
                value if type(value) is float else None,
                value if type(value) in (list, dict) else None,
            )
            for number, value in enumerate([None, *VALUES])
        ]
        connection.executemany("insert into v values (?, ?, ?, ?)", rows)
        before = [tuple(map(shown, row)) for row in connection.execute("select * from v order by id")]
    status, dump, errors = run("dump", "old")
    assert (status, errors) == (0, "")
    Path("dump.sql").write_bytes(dump.encode("utf-8"))
    assert run("run", "new", "dump.sql", "--backend", backend) == (0, "", "")
    with quereus_store.connect("new", backend=backend) as connection:
        after = [tuple(map(shown, row)) for row in connection.execute("select * from v order by id")]
        assert connection.database.check() == []
    assert after == before
    assert run("dump", "new") == (0, dump, "")


def test_a_dump_is_utf_8_whatever_the_terminal_is(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "db") as connection:
        connection.execute("create table v (t text primary key)")
        connection.execute("insert into v values ('é😀')")
    command = [sys.executable, "-m", "quereus_store.cli", "dump", str(tmp_path / "db")]
    done = subprocess.run(command, capture_output=True, check=True, env={"PYTHONIOENCODING": "latin-1"})
    assert "'é😀'" in done.stdout.decode("utf-8")


def test_text_that_a_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "quereus_store.cli",
        "-c",
        "select 'é' || char(55296) as t; select nothing",
    ]
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, env={"PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stdout) == (1, "t\n\\xe9\\ud800\n")
    assert done.stderr.startswith("error: Column not found: nothing")


def test_integers_of_thousands_of_digits(run: Run) -> None:
    Path("big.jsonl").write_text('{"id":1' + "0" * 5000 + "}\n")
    status, said, errors = run("import", "db", "big", "big.jsonl")
    assert (status, errors) == (0, "")
    assert "1 rows into big" in said
    assert run("export", "db", "big", "again.jsonl")[0] == 0
    assert Path("again.jsonl").read_text() == Path("big.jsonl").read_text()
    assert run("export", "db", "big", "again.csv")[0] == 0
    assert Path("again.csv").read_text() == "id\n1" + "0" * 5000 + "\n"
    assert run("db", "-c", "select id from big")[1] == "id\n1" + "0" * 5000 + "\n"
    with pytest.raises(ValueError, match="4300"):
        str(10**5000)  # the program that calls the command keeps its own limit


def test_json_lines_keep_what_utf_8_cannot_spell(run: Run) -> None:
    with quereus_store.connect("db") as connection:
        connection.execute("create table v (id integer primary key, t text, r real)")
        connection.execute("insert into v values (1, ?, ?), (2, 'é', ?)", ("x\ud800", INFINITE, NOT_A_NUMBER))
    assert run("export", "db", "v", "v.jsonl")[0] == 0
    rows = [json.loads(line) for line in Path("v.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["t"] for row in rows] == ["x\ud800", "é"]
    assert rows[0]["r"] == INFINITE
    assert math.isnan(rows[1]["r"])


def test_an_export_that_fails_leaves_the_file_that_was_there(run: Run) -> None:
    with quereus_store.connect("db") as connection:
        connection.execute("create table v (id integer primary key, t text)")
        connection.execute("insert into v values (1, 'fine'), (2, ?)", ("x\ud800",))
    Path("v.csv").write_text("yesterday's\n")
    status, _said, errors = run("export", "db", "v", "v.csv")
    assert status == 1
    assert "v.csv: among rows 1 to 2 is a text with an unpaired surrogate (U+D800)" in errors
    assert Path("v.csv").read_text() == "yesterday's\n"
    status, _said, errors = run("export", "db", "v", "nowhere/v.csv")
    assert (status, errors) == (1, "error: nowhere/v.csv: No such file or directory\n")
    assert sorted(place.name for place in Path().iterdir()) == ["db", "db-lock", "v.csv"]


def test_an_export_through_a_link_changes_its_target(run: Run) -> None:
    Path("target.csv").write_text("old\n")
    Path("link.csv").symlink_to("target.csv")
    assert run("export", "db0", "values (1)", "link.csv")[0] == 1  # no such database
    quereus_store.connect("db").close()
    assert run("export", "db", "select 1 as a", "link.csv")[0] == 0
    assert Path("link.csv").is_symlink()
    assert Path("target.csv").read_text() == "a\n1\n"


@pytest.mark.parametrize("delimiter", ["xx", '"', "\n", "\r"])
def test_delimiters_that_separate_nothing(run: Run, delimiter: str) -> None:
    Path("t.csv").write_text("a,b\n1,2\n")
    status, said, errors = run("import", "db", "t", "t.csv", "--delimiter", delimiter)
    assert (status, said) == (1, "")
    assert "cannot separate fields: name one character" in errors


def test_documents_nested_too_deeply(run: Run) -> None:
    Path("t.jsonl").write_text('{"a":' + "[" * 100_000 + "]" * 100_000 + '}\n{"a":1}\n')
    status, said, _errors = run("import", "db", "t", "t.jsonl")
    assert status == 0
    assert "1 rows into t" in said
    assert "line 1: not valid JSON: nested too deeply" in said


def test_numbering_goes_on_in_the_next_file(run: Run) -> None:
    """The key that the first import made up is made up for later files, too."""
    Path("t.csv").write_text("a,b\n1,x\n1,x\n")
    assert "2 rows into t" in run("import", "db", "t", "t.csv")[1]
    assert run("import", "db", "t", "t.csv") == (0, "2 rows into t\n", "")
    assert run("db", "-c", "select row_id, a, b from t")[1] == "row_id,a,b\n1,1,x\n2,1,x\n3,1,x\n4,1,x\n"
    # A file that has the column itself says it.
    Path("u.csv").write_text("row_id,a,b\n9,2,y\n")
    assert run("import", "db", "t", "u.csv") == (0, "1 rows into t\n", "")
    assert run("import", "db", "t", "t.csv")[0] == 0
    assert run("db", "-c", "select max(row_id) as m from t")[1] == "m\n11\n"


def test_a_key_with_a_default_is_not_numbered(run: Run) -> None:
    with quereus_store.connect("db") as connection:
        connection.execute("create table t (id integer primary key default 7, a text)")
        connection.execute("create table two (x integer, y integer, a text, primary key (x, y))")
    Path("t.csv").write_text("a\nx\n")
    assert run("import", "db", "t", "t.csv")[1] == "1 rows into t\n"
    assert run("db", "-c", "select * from t")[1] == "id,a\n7,x\n"
    status, said, _errors = run("import", "db", "two", "t.csv")
    assert (status, "NOT NULL constraint failed: two.x" in said) == (0, True)
