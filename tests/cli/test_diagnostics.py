"""Errors as users see them: message, place, line and caret."""

import io

import pytest

from quereus_store.cli.diagnostics import describe, report
from quereus_store.errors import SourcePosition, StatusCode, sql_error


def reported(error: BaseException, **place: object) -> list[str]:
    stream = io.StringIO()
    report(error, stream, **place)  # type: ignore[arg-type]
    return stream.getvalue().splitlines()


def test_the_caret_stands_under_the_offending_word() -> None:
    error = sql_error(StatusCode.ERROR, "Column not found: nam", SourcePosition(2, 8))
    assert reported(error, text="-- first\nselect nam from crew") == [
        "error: Column not found: nam",
        "  2 | select nam from crew",
        "    |        ^",
    ]


def test_a_statement_inside_a_script_is_shown_with_the_lines_of_the_script() -> None:
    error = sql_error(StatusCode.ERROR, "no", SourcePosition(1, 3))
    assert reported(error, text="a b", name="s.sql", line=10, column=5) == [
        "error: no",
        "  in s.sql, line 10, column 7",
        "  10 | a b",
        "     |   ^",
    ]


def test_without_a_position_the_statement_s_line_is_named() -> None:
    error = sql_error(StatusCode.CONSTRAINT, "UNIQUE constraint failed: t PK.")
    assert reported(error, text="insert …", name="s.sql", line=3) == [
        "error: UNIQUE constraint failed: t PK.",
        "  in s.sql, line 3",
    ]


def test_a_position_past_the_end_points_behind_the_text() -> None:
    error = sql_error(StatusCode.ERROR, "Expected expression.", SourcePosition(1, 99))
    assert reported(error, text="select")[-1] == "    |       ^"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(2, "No such file or directory", "x.csv"), "x.csv: No such file or directory"),
        (ValueError("odd"), "odd"),
        (ValueError(), "ValueError"),
    ],
)
def test_every_expected_error_has_one_line(error: BaseException, text: str) -> None:
    assert describe(error) == text


def test_a_reason_that_the_message_leaves_out_is_told() -> None:
    error = sql_error(StatusCode.ERROR, "Unknown pragma: memory_limit")
    error.__cause__ = ValueError("'abc' is no size")
    assert reported(error) == ["error: Unknown pragma: memory_limit", "  because: 'abc' is no size"]


def test_a_reason_that_the_message_tells_is_not_told_again() -> None:
    error = sql_error(StatusCode.ERROR, "Function f failed: division by zero")
    error.__cause__ = ZeroDivisionError("division by zero")
    assert reported(error) == ["error: Function f failed: division by zero"]
