"""JSON arrays, and import and export by standard streams and pipes."""

import io
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.cli.main import main
from quereus_store.cli.transfer import json_source
from quereus_store.cli.transfer.json_source import JsonArraySource

Run = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the command in a folder of its own, with ``standard_input`` to read from."""
    monkeypatch.chdir(tmp_path)

    def run_command(*words: str, standard_input: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(standard_input)))
        status = main(words)
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return run_command


def rows_of(sql: str) -> object:
    with quereus_store.connect("app.qdb") as connection:
        return connection.execute(sql).fetchall()


def test_an_array_of_objects(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(
        '\n[ {"id": 1, "tags": ["a"]},\n\n{"id": 2,\n"ok": false}, 7\n,{"id":3}]\n'
    )
    status, said, _errors = run("import", "app.qdb", "t", "t.json")
    assert status == 0
    assert "1 rows rejected, see t.rejected.jsonl\n  line 5: not a JSON object" in said
    assert rows_of("select id, tags, ok from t order by id") == [
        (1, ["a"], None),
        (2, None, False),
        (3, None, None),
    ]


def test_a_json_file_of_lines(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"id": 1}\n{"id": 2}\n')
    assert run("import", "app.qdb", "t", "t.json")[0] == 0
    assert rows_of("select id from t") == [(1,), (2,)]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_an_exported_array_is_json_and_comes_back(run: Run, tmp_path: Path, rows: int) -> None:
    run("app.qdb", "-c", "create table t (id integer primary key, s text null);")
    run(
        "app.qdb",
        "-c",
        f"insert into t select value, 'né' from json_each('{json.dumps(list(range(rows)))}');",
    )
    assert run("export", "app.qdb", "t", "t.json")[0] == 0
    exported = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert exported == [{"id": i, "s": "né"} for i in range(rows)]
    if rows:
        assert run("import", "app.qdb", "u", "t.json")[0] == 0
        assert rows_of("select * from u") == rows_of("select * from t")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('[{"a": 1},\n{"a": }]', "line 2: not valid JSON: Expecting value"),
        ('[{"a": 1}\n', "line 2: expected a comma or the end of the array"),
        ('[{"a": "x\n"}]', "line 1: not valid JSON: Invalid control character at"),
        ('[{"a": "x', "line 1: not valid JSON: Unterminated string starting at"),
        ('[{"a": 1}] x', "line 1: the array has ended, but the file goes on"),
        ('[{"a": 1},]', "line 1: not valid JSON: Expecting value"),
        ('[{"a":' + "[" * 100_000, "line 1: not valid JSON: nested too deeply"),
        ("[]", "the array holds no object"),
        ('[{"a": 1, "A": 2}]', "column 'A' stands twice in the objects"),
    ],
)
def test_what_is_no_array_of_objects(run: Run, tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "t.json").write_text(content)
    assert run("import", "app.qdb", "t", "t.json") == (1, "", f"error: t.json: {reason}\n")
    assert rows_of("select count(*) from schema() where name = 't'") == [(0,)]


def test_bytes_outside_the_encoding_refuse_the_row(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b'[{"a": "x"},\n{"a": "\xff"}]')
    said = run("import", "app.qdb", "t", "t.json")[1]
    assert "  line 2: column 'a': byte 0xff at character 1 is not valid utf-8" in said
    assert rows_of("select a from t") == [("x",)]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.fixed_dictionaries({"a": VALUES}), min_size=1, max_size=5), st.sampled_from([None, 1]))
@settings(max_examples=40, deadline=None)
def test_an_array_is_read_through_a_window(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, object]], indent: int | None
) -> None:
    """Whatever is in memory at a time, the values are those of the whole text."""
    path = tmp_path_factory.mktemp("json") / "t.json"
    path.write_text(json.dumps(objects, indent=indent, ensure_ascii=False), encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_source, "_CHUNK", 3)
        rows = [row for _done, batch in JsonArraySource(path).batches() for row in batch.rows]
    assert rows == [[item["a"]] for item in objects]


def test_standard_input(run: Run, tmp_path: Path) -> None:
    assert run("import", "app.qdb", "a", "-", "--format", "csv", standard_input=b"id,s\n1,x\n2\n") == (
        0,
        'create table "a" ("id" integer, "s" text, primary key ("id"));\n'
        "1 rows into a\n1 rows rejected, see a.rejected.csv\n  line 3: 1 fields, the header has 2\n",
        "",
    )
    assert run("import", "app.qdb", "b", "-", "--format", "json", standard_input=b'[{"id": 5}]')[0] == 0
    assert run("import", "app.qdb", "b", "-", "--format", "jsonl", standard_input=b'{"id": 6}')[0] == 0
    assert rows_of("select id from b") == [(5,), (6,)]
    assert run("import", "app.qdb", "a", "-", standard_input=b"id\n1\n")[2].startswith("error: - has no name")
    assert (
        run("import", "app.qdb", "a", "-", "--format", "csv")[2] == "error: standard input: no header line\n"
    )


def test_standard_output(run: Run) -> None:
    query = "values (1, 'né'), (2, null)"
    assert run("export", ":memory:", query, "-", "--format", "tsv")[1:] == (
        "column_0\tcolumn_1\n1\tné\n2\t\n",
        "2 rows\n",
    )
    assert run("export", ":memory:", "select 1 as a", "-", "--format", "json")[1] == '[\n{"a":1}\n]\n'
    assert run("export", ":memory:", "select 1 as a", "-", "--format", "jsonl")[1] == '{"a":1}\n'
    assert run("export", ":memory:", "select 1 as a", "-")[2].startswith("error: - has no name that tells")


def test_a_format_stands_above_the_name(run: Run, tmp_path: Path) -> None:
    assert run("export", ":memory:", "select 1 as id, 2 as b", "t.data", "--format", "psv")[0] == 0
    assert (tmp_path / "t.data").read_text() == "id|b\n1|2\n"
    assert run("import", "app.qdb", "t", "t.data", "--format", "psv")[0] == 0
    assert rows_of("select * from t") == [(1, 2)]


def test_an_import_from_a_pipe_with_a_name(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    writer = threading.Thread(target=(tmp_path / "t.csv").write_text, args=("id\n1\n2\n",))
    writer.start()
    assert run("import", "app.qdb", "t", "t.csv")[0] == 0
    writer.join()
    assert rows_of("select id from t") == [(1,), (2,)]
