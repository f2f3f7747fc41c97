"""Result rows in every mode."""

import io

import pytest

from quereus_store.cli.results import MODES

NAMES = ["id", "note"]
ROWS = [(1, "it's"), (2, None), (3, 'two\nlines, "quoted"')]


def written(mode: str, rows: list[tuple[object, ...]] = ROWS, limit: int = 0) -> str:
    stream = io.StringIO()
    MODES[mode](stream, NAMES, iter(rows), limit)
    return stream.getvalue()


def test_csv_quotes_where_it_must() -> None:
    assert written("csv") == 'id,note\n1,it\'s\n2,\n3,"two\nlines, ""quoted"""\n'


def test_json_lines_keep_null() -> None:
    assert written("json").splitlines()[1] == '{"id":2,"note":null}'


def test_list_and_line_and_markdown() -> None:
    assert written("list", [(1, "a")]) == "1|a\n"
    assert written("line", [(1, "a")]) == "  id = 1\nnote = a\n\n"
    assert written("markdown", [(1, "a|b")]) == "| id | note |\n| --- | --- |\n| 1 | a\\|b |\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.0, "1.0"),
        (b"\x00\xff", "x'00ff'"),
        ({"a": [1]}, '{"a":[1]}'),
        (10**20, "1" + "0" * 20),
    ],
)
def test_values_render_as_the_database_writes_them(value: object, text: str) -> None:
    assert written("list", [(value, "")]) == f"{text}|\n"


def test_the_table_tells_of_rows_it_does_not_show() -> None:
    text = written("table", limit=2)
    assert "NULL" in text
    assert "3 rows, the first 2 shown" in text
    assert "quoted" not in text


def test_one_row_is_no_rows() -> None:
    assert "1 row\n" in written("table", [(1, "a")])
