"""Reading CSV and JSON lines: every row is either read or refused with its line and a reason."""

import json
from pathlib import Path

import pytest

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.transfer.conversion import convert_columns
from quereus_store.cli.transfer.csv_source import CsvSource
from quereus_store.cli.transfer.inference import infer_columns
from quereus_store.cli.transfer.jsonl_source import JsonLinesSource
from quereus_store.cli.transfer.reading import Rejected, Source
from quereus_store.cli.transfer.rejects import RejectsFile


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(source: Source) -> tuple[list[list[object]], list[int], list[Rejected]]:
    rows: list[list[object]] = []
    lines: list[int] = []
    rejected: list[Rejected] = []
    for _done, batch in source.batches():
        rows += batch.rows
        lines += batch.lines
        rejected += batch.rejected
    return rows, lines, rejected


def test_csv_rows_with_their_lines(tmp_path: Path) -> None:
    source = CsvSource(write(tmp_path, "a.csv", 'id,note\n1,"two\nlines"\n\n2,\n'))
    assert source.names == ["id", "note"]
    assert read(source) == ([["1", "two\nlines"], ["2", None]], [2, 5], [])


def test_ragged_and_malformed_csv_rows_are_refused_and_reading_goes_on(tmp_path: Path) -> None:
    source = CsvSource(write(tmp_path, "a.csv", 'a,b\n1\n2,"x"y\n3,4,5\n6,7\n8,"open\n'))
    rows, lines, rejected = read(source)
    assert (rows, lines) == ([["6", "7"]], [5])
    assert [(r.line, r.reason.split(":")[0]) for r in rejected] == [
        (2, "1 fields, the header has 2"),
        (3, "not valid CSV"),
        (4, "3 fields, the header has 2"),
        (6, "not valid CSV"),
    ]
    assert rejected[1].content == ['2,"x"y']
    assert rejected[3].content == ['8,"open']


def test_wrong_encoding_refuses_the_row_and_keeps_its_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"id,name\n1,Ann\n2,Ren\xe9\n3,Z\xc3\xb6e\n")
    source = CsvSource(path)
    rows, _lines, rejected = read(source)
    assert rows == [["1", "Ann"], ["3", "Zöe"]]
    assert rejected[0].line == 3
    assert rejected[0].reason == "column 'name': byte 0xe9 at character 4 is not valid utf-8"
    with RejectsFile(tmp_path / "bad.csv", source.names, json_lines=False) as refused:
        refused.add(rejected)
    assert b"Ren\xe9" in (tmp_path / "bad.csv").read_bytes()
    assert read(CsvSource(path, encoding="latin-1"))[0][1] == ["2", "René"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no header line"),
        (b"a,a\n", "column 'a' stands twice in the header"),
        (b"a,,b\n", "column 2 has no name"),
        (b"n\xe4me\n", "line 1: byte 0xe4 at character 2 is not valid utf-8"),
    ],
)
def test_an_unusable_header_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        CsvSource(write(tmp_path, "a.csv", content))


def test_unknown_encoding_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="unknown encoding 'martian'"):
        CsvSource(write(tmp_path, "a.csv", "a\n1\n"), encoding="martian")


def test_byte_order_marks_choose_the_encoding(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        source = CsvSource(write(tmp_path, "a.csv", "näme\tb\nx\ty\n".encode(encoding)))
        assert (source.names, read(source)[0]) == (["näme", "b"], [["x", "y"]])


def test_json_lines_columns_are_the_keys_of_all_objects(tmp_path: Path) -> None:
    lines = '{"a": 1}\n\n[2]\n{"b": [true], "a": null}\nnonsense\n'
    source = JsonLinesSource(write(tmp_path, "a.jsonl", lines))
    rows, places, rejected = read(source)
    assert source.names == ["a", "b"]
    assert (rows, places) == ([[1, None], [None, [True]]], [1, 4])
    assert [(r.line, r.reason[:14], r.content) for r in rejected] == [
        (3, "not a JSON obj", "[2]"),
        (5, "not valid JSON", "nonsense"),
    ]


def test_json_rejects_are_json_lines(tmp_path: Path) -> None:
    with RejectsFile(tmp_path / "bad.jsonl", ["a"], json_lines=True) as refused:
        refused.add([Rejected(3, "not a JSON object", "[2]")])
    assert json.loads((tmp_path / "bad.jsonl").read_text()) == {
        "line": 3,
        "reason": "not a JSON object",
        "row": "[2]",
    }


def test_no_rejects_file_without_rejects(tmp_path: Path) -> None:
    with RejectsFile(tmp_path / "bad.csv", ["a"], json_lines=False):
        pass
    assert not (tmp_path / "bad.csv").exists()


@pytest.mark.parametrize(
    ("values", "type_name", "nullable"),
    [
        (["1", "-2", "0"], "integer", False),
        (["1", "99999999999999999999"], "integer", False),
        (["1", None, "2.5"], "real", True),
        (["1e3", ".5"], "real", False),
        (["01", "02"], "text", False),
        (["00501.5"], "real", False),
        (["true", "FALSE"], "boolean", False),
        (["2013-01-31"], "date", False),
        (["2013-02-31"], "text", False),
        (["2013-01-31T05:00:00Z", "2013-01-31 05:00"], "datetime", False),
        (["05:00", "23:59:59"], "time", False),
        (["1", "x"], "text", False),
        ([None, None], "text", True),
        ([1, 2.5], "real", False),
        ([True, False], "boolean", False),
        ([True, 1], "any", False),
        ([1, "x"], "any", False),
        ([{"a": 1}, [2]], "json", False),
    ],
)
def test_the_narrowest_type_that_holds_all_values(
    values: list[object], type_name: str, nullable: bool
) -> None:
    (column,) = infer_columns(1, [[[value] for value in values]])
    assert (column.type_name, column.nullable) == (type_name, nullable)


def test_inference_looks_at_every_batch() -> None:
    first, second = infer_columns(2, [[["1", "x"]], [["2.5", None]]])
    assert (first.type_name, second.type_name, second.nullable) == ("real", "text", True)


def test_conversion_is_strict_and_names_the_culprit() -> None:
    rows = [["1", "2.5", "yes"], ["12ab", "1", "no"], ["3", "nan", ""], [None, "1e3", None]]
    converted, kept, refused = convert_columns(rows, ["i", "r", "t"], ["INTEGER", "REAL", "TEXT"])
    assert converted == [(1, 2.5, "yes"), (None, 1000.0, None)]
    assert kept == [0, 3]
    assert refused == [(1, "column 'i': '12ab' is not INTEGER"), (2, "column 'r': 'nan' is not REAL")]


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("BOOLEAN", "T", True),
        ("NUMERIC", "12345678901234567890", 12345678901234567890),
        ("NUMERIC", "1.5", 1.5),
        ("BLOB", "x'00ff'", b"\x00\xff"),
        ("DATE", "soon", "soon"),
    ],
)
def test_texts_become_values_of_the_column(type_name: str, text: str, value: object) -> None:
    assert convert_columns([[text]], ["c"], [type_name])[0] == [(value,)]
