"""The shell on a terminal: keys are typed, and what is printed, remembered and offered is looked at."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import quereus_store
from quereus_store import Connection
from quereus_store.cli.session import Session
from quereus_store.cli.shell.dot_commands import DOT_COMMANDS
from quereus_store.cli.shell.repl import history_file, run_terminal, run_text

Type = Callable[[str], str]
"""Types keys into a new shell until they are read; returns what it printed, errors included."""

ENTER, CONTROL_C, CONTROL_D = "\r", "\x03", "\x04"

SCHEMA = """
create table crew (id integer primary key, nick text, rank integer null);
create index by_rank on crew (rank);
create view officers as select nick from crew where rank > 2;
insert into crew values (1, 'Ann', 3), (2, 'Bo', null), (3, 'Cy', 1);
"""


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with quereus_store.connect("app.qdb") as connection:
        connection.executescript(SCHEMA)
        yield connection


@pytest.fixture
def typing(connection: Connection) -> Type:
    def type_keys(keys: str) -> str:
        output = io.StringIO()
        session = Session(connection, mode="list", output=output, errors=output)
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text(keys + CONTROL_D)
            run_terminal(session, "app.qdb")
        return output.getvalue()

    return type_keys


# --- typing -----------------------------------------------------------------------------------------------


def test_a_statement_runs_at_its_semicolon(typing: Type) -> None:
    assert typing(f"select nick from crew where id = 1;{ENTER}") == "Ann\n"


def test_a_statement_goes_on_over_lines_until_its_semicolon(typing: Type) -> None:
    assert typing(f"select nick{ENTER}from crew{ENTER}where rank is null{ENTER};{ENTER}") == "Bo\n"
    assert typing(f"select 'a;{ENTER}b' as text;{ENTER}") == "a;\nb\n"


def test_dot_commands_need_no_semicolon(typing: Type) -> None:
    assert typing(f".tables{ENTER}") == "main|table|crew\nmain|view|officers\n"


def test_an_error_does_not_end_the_shell(typing: Type) -> None:
    printed = typing(f"select nam from crew;{ENTER}.nothing{ENTER}select 1;{ENTER}")
    assert printed.startswith("error: Column not found: nam\n")
    assert "error: unknown command .nothing; .help lists them\n" in printed
    assert printed.endswith("\n1\n")


def test_control_c_drops_what_was_typed(typing: Type) -> None:
    assert typing(f"select 1,{ENTER}{CONTROL_C}select 2;{ENTER}") == "2\n"


@pytest.mark.parametrize("word", [".quit", ".exit"])
def test_leaving(word: str, typing: Type) -> None:
    assert typing(f"{word}{ENTER}select 1;{ENTER}") == ""


def test_statements_are_remembered(typing: Type) -> None:
    """In a file below the home, from which the arrow keys of the next shell bring them back."""
    typing(f"select 41 + 1;{ENTER}select{ENTER}2;{ENTER}")
    typing(f".tables{ENTER}")
    remembered = FileHistory(str(history_file())).load_history_strings()
    assert list(remembered) == [".tables", "select\n2;", "select 41 + 1;"]


def test_a_home_that_cannot_be_written_costs_the_history_only(
    typing: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert typing(f"select 1;{ENTER}") == "1\n"
    assert "no history" in capsys.readouterr().err


# --- completion -------------------------------------------------------------------------------------------


class Typist:
    """Stands in for the line editor: gives lines, and asks the completer for what it offers before each."""

    def __init__(self, *lines: tuple[str, str]) -> None:
        self._lines = list(lines)
        self.offered: list[list[str]] = []

    def __call__(self, *, completer: Completer, **_options: Any) -> Typist:
        self._completer = completer
        return self

    def prompt(self, _prompt: str) -> str:
        if not self._lines:
            raise EOFError
        begun, line = self._lines.pop(0)
        completions = self._completer.get_completions(Document(begun), CompleteEvent())
        self.offered.append([completion.text for completion in completions])
        return line


def test_completion_knows_what_the_database_holds_at_this_moment(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    typist = Typist(
        ("select nick from cr", "create table crate (mark text primary key);"),
        ("select * from cr", "alter table crate add column weight real null;"),
        ("select * from crate where we", "drop table crate;"),
        ("select * from crate where we", ""),
        ("select * from crate where officers.n", ""),
        (".sch", ""),
    )
    monkeypatch.setattr("prompt_toolkit.PromptSession", typist)
    output = io.StringIO()
    run_terminal(Session(connection, output=output, errors=output), "app.qdb")
    assert output.getvalue() == ""
    assert typist.offered == [
        ["crew", "create", "cross"],
        ["crate", "crew", "create", "cross"],
        ["weight"],
        [],
        ["nick"],
        [".schema"],
    ]


# --- dot commands -----------------------------------------------------------------------------------------


@pytest.fixture
def entered(connection: Connection) -> Callable[..., str]:
    """Runs lines in one session; returns everything that was printed."""

    def enter(*lines: str, mode: str = "list") -> str:
        output = io.StringIO()
        session = Session(connection, mode=mode, output=output, errors=output)
        for line in lines:
            run_text(session, line)
        return output.getvalue()

    return enter


def test_tables(entered: Callable[..., str]) -> None:
    assert entered(".tables off*") == "main|view|officers\n"


def test_schema(entered: Callable[..., str], tmp_path: Path) -> None:
    """What it prints makes the same again."""
    printed = entered(".schema")
    assert len(printed.splitlines()) == 3
    with quereus_store.connect(":memory:") as copy:
        copy.executescript(printed)
        assert copy.execute(
            "select name from schema() where type in ('table', 'index', 'view')"
        ).fetchall() == [
            ("crew",),
            ("by_rank",),
            ("officers",),
        ]
    assert entered(".schema crew").splitlines() == printed.splitlines()[:2]
    assert entered(".schema officers") == printed.splitlines()[2] + "\n"


def test_attached_databases(entered: Callable[..., str]) -> None:
    """They are shown with their names; a dump is of the database itself."""
    statements = (
        "attach ':memory:' as aux;",
        "create table aux.boat (id integer primary key);",
        "create index aux.by_id on boat (id);",
        "create view aux.boats as select * from boat;",
    )
    assert "aux|table|boat\n" in entered(*statements, ".tables")
    printed = entered(".schema").splitlines()[-3:]
    with quereus_store.connect(":memory:") as copy:
        copy.execute("attach ':memory:' as aux")
        copy.executescript("\n".join(printed))
        shown = copy.execute("select name from schema() where schema = 'aux'").fetchall()
        assert shown == [("boat",), ("by_id",), ("boats",)]
    assert "boat" not in entered(".dump")


def test_import_and_export(entered: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id,nick,rank\n4,Di,\n1,Ed,2\nx,Flo,2\n")
    printed = entered(".import more.csv crew", ".export crew all.jsonl", "select count(*) from crew;")
    assert "1 rows into crew" in printed
    assert "2 rows rejected, see more.rejected.csv" in printed
    assert "4 rows to all.jsonl" in printed
    assert printed.endswith("\n4\n")
    assert len((tmp_path / "more.rejected.csv").read_text().splitlines()) == 3
    assert entered(".import more.csv") == "error: usage: .import DATA TABLE [FORMAT]\n"
    assert "4 rows to all" in entered(".export crew all psv")
    assert (tmp_path / "all").read_text().startswith("id|nick|rank\n")
    assert "4 rows into again" in entered(".import all again psv")
    assert entered(".import all again xml").startswith("error: unknown format 'xml'; there are csv, ")
    assert entered(".import - again csv").startswith("error: statements come from standard input")
    assert entered(".import none.csv crew").startswith("error: none.csv")


def test_timing(entered: Callable[..., str]) -> None:
    printed = entered("select 1;", ".timer on", "select 2;", ".timer off", "select 3;")
    assert re.fullmatch(r"1\n2\n\d+\.\d ms\n3\n", printed)
    assert entered(".timer maybe") == "error: usage: .timer on|off\n"


def test_modes_and_limits(entered: Callable[..., str]) -> None:
    query = "select id, nick from crew order by id;"
    printed = entered(query, ".mode csv", query, ".mode", ".limit 2", ".mode table", query, ".limit")
    assert printed.startswith("1|Ann\n2|Bo\n3|Cy\nid,nick\n1,Ann\n2,Bo\n3,Cy\ncsv\n")
    assert "Cy" not in printed.split("csv\n")[1]
    assert printed.endswith("\n2\n")
    assert entered(".mode stone").startswith("error: unknown mode stone; one of ")
    assert entered(".limit few") == "error: usage: .limit ROWS (0 for all)\n"


def test_read_dump_and_check(entered: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "more.sql").write_text("insert into crew values (9, 'Io', 9);\nselect nick from officers;\n")
    assert entered(".read more.sql") == "Ann\nIo\n"
    assert "'Io'" in entered(".dump")
    assert "The database is in order." in entered(".check")


def test_help_lists_every_command(entered: Callable[..., str]) -> None:
    printed = entered(".help")
    assert all(name in printed for name in DOT_COMMANDS)


def test_tables_of_rows_can_be_read(entered: Callable[..., str]) -> None:
    """Names over columns, NULL told, the number of rows below."""
    lines = entered("select id * 100 as n, nick, rank from crew order by id;", mode="table").splitlines()
    cells = [line.split() for line in lines if line.strip(" ─")]
    assert cells == [
        ["n", "nick", "rank"],
        ["100", "Ann", "3"],
        ["200", "Bo", "NULL"],
        ["300", "Cy", "1"],
        ["3", "rows"],
    ]
