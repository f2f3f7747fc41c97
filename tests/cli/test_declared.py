"""``quereus diff`` and ``quereus apply``: a database made as a file declares it."""

from pathlib import Path

import pytest

import quereus_store
from tests.cli.running import Run

FIRST = """
declare schema main {
    table crew { id integer primary key, nick text }
    index crew_nick on crew (nick)
    seed crew ((1, 'Ann'), (2, 'Bo'))
};
declare schema log { table entry { at integer primary key, what text } };
"""

SECOND = """
declare schema main {
    table crew { id integer primary key, name text with tags ("quereus.previous_name" = 'nick') }
};
"""


def query(sql: str) -> list[tuple[object, ...]]:
    with quereus_store.connect("app.qdb") as connection:
        return list(connection.execute(sql).fetchall())


def test_apply_makes_the_database_and_diff_is_content(run: Run) -> None:
    Path("schema.sql").write_text(FIRST)
    status, out, err = run("apply", "app.qdb", "schema.sql", "--seed")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "create table crew (id integer primary key, nick text);",
        "create index crew_nick on crew (nick);",
        "create table log.entry (at integer primary key, what text);",
    ]
    assert run("diff", "app.qdb", "schema.sql") == (0, "", "")
    assert run("apply", "app.qdb", "schema.sql", "--seed") == (0, "", "")
    assert query("select * from crew order by id") == [(1, "Ann"), (2, "Bo")]
    assert query("select * from log.entry") == []


def test_diff_prints_what_apply_does(run: Run) -> None:
    Path("schema.sql").write_text(FIRST)
    run("apply", "app.qdb", "schema.sql", "--seed", "--quiet")
    Path("schema.sql").write_text(SECOND)
    status, out, _err = run("diff", "app.qdb", "schema.sql")
    assert status == 1
    assert out == "DROP INDEX IF EXISTS crew_nick;\nALTER TABLE crew RENAME COLUMN nick TO name;\n"
    assert run("apply", "app.qdb", "schema.sql") == (0, out, "")
    assert query("select name from crew order by id") == [("Ann",), ("Bo",)]


def test_all_schemas_of_a_file_or_none(run: Run) -> None:
    Path("schema.sql").write_text(FIRST)
    run("apply", "app.qdb", "schema.sql", "--seed")
    Path("schema.sql").write_text(
        """
        declare schema log { table other { id integer primary key } };
        declare schema main { table crew { id integer primary key, nick text, rank integer } };
        """
    )
    status, out, err = run("apply", "app.qdb", "schema.sql")
    assert (status, out) == (1, "")
    assert err.splitlines() == [
        "error: NOT NULL constraint failed for column 'rank' added to main.crew — column has no DEFAULT and"
        " existing rows cannot be backfilled",
        "  while applying schema main: ALTER TABLE crew ADD COLUMN rank integer",
        "  hint: declare the column null, or give it a DEFAULT for the rows that are there",
    ]
    assert query("select * from log.entry") == []


def test_a_policy_for_names(run: Run) -> None:
    Path("schema.sql").write_text(FIRST)
    run("apply", "app.qdb", "schema.sql")
    Path("schema.sql").write_text("declare schema main { table sailor { id integer primary key } }")
    status, _out, err = run("apply", "app.qdb", "schema.sql", "--rename-policy", "require-hint")
    assert (status, err.split(":")[:2]) == (1, ["error", " rename_policy = 'require-hint'"])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "declare schema main {\n  table a { id integer primary key }\n"
            "  table A { id integer primary key }\n}",
            [
                "error: Table 'A' is declared more than once in schema 'main'",
                "  in schema.sql, line 3, column 9",
                "  3 |   table A { id integer primary key }",
                "    |         ^",
            ],
        ),
        (
            "-- no declaration\ndrop table crew;",
            ["error: schema.sql: line 2: a schema file holds DECLARE statements only"],
        ),
        ("", ["error: schema.sql: no schema is declared here (declare schema main { … })"]),
    ],
)
def test_what_is_wrong_is_shown_in_the_file(run: Run, text: str, lines: list[str]) -> None:
    Path("schema.sql").write_text(text)
    status, out, err = run("apply", "app.qdb", "schema.sql")
    assert (status, out, err.splitlines()) == (1, "", lines)
