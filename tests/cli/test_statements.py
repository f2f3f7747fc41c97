"""Splitting scripts: a statement ends at a ``;`` that no string, name, comment or block holds."""

import pytest

from quereus_store.cli.statements import Statement, is_complete, split_statements


def texts(script: str) -> list[str]:
    return [statement.text for statement in split_statements(script)]


def test_statements_come_without_their_semicolons() -> None:
    assert texts("select 1; select 2;\nselect 3") == ["select 1", "select 2", "select 3"]


@pytest.mark.parametrize(
    "statement",
    [
        "select 'a;b', 'it''s; so'",
        'select "odd;name", `tick;`, [bracket;]',
        "select 1 -- not; here\n + 2",
        "select 1 // nor; here\n + 2",
        "select /* a; /* nested; */ b; */ 1",
        "declare schema main { table t (a int); index i on t (a); }",
        "select 6 / 2 - 1",
    ],
)
def test_a_semicolon_inside_does_not_split(statement: str) -> None:
    assert texts(f"{statement}; select 2") == [statement, "select 2"]


def test_comments_and_blanks_alone_are_no_statement() -> None:
    assert texts(" ;; -- nothing\n /* here */ ;\n") == []


def test_a_statement_knows_where_it_starts() -> None:
    script = "-- header\nselect 1;\n\n   select 2;"
    assert list(split_statements(script)) == [
        Statement("select 1", 2, 1, True),
        Statement("select 2", 4, 4, True),
    ]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("select 1;", True),
        ("select 1; -- done", True),
        ("select 1", False),
        ("select 1; select 2", False),
        ("select 'open;", False),
        ("select 1; /* open;", False),
        ("declare schema main { table t (a int);", False),
    ],
)
def test_completeness_decides_whether_the_shell_reads_on(text: str, complete: bool) -> None:
    assert is_complete(text) is complete
