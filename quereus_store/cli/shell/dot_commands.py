"""The dot commands: a table from name to function, usage and help.

Each takes the session and the words after its name; it prints to the session's output and raises
:class:`CommandError` for wrong usage.  :class:`Leave` ends the shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.results import MODES
from quereus_store.cli.session import Session
from quereus_store.cli.shell.names import relations


class Leave(Exception):
    """The user asked to leave the shell."""


@dataclass(frozen=True, slots=True)
class DotCommand:
    """A command of the shell itself."""

    run: Callable[[Session, Sequence[str]], None]
    usage: str
    help: str


def run_dot_command(session: Session, line: str) -> None:
    """Run one line that starts with a dot.

    :raises CommandError: when there is no such command or its arguments are wrong.
    :raises Leave: for ``.quit``.
    """
    try:
        name, *words = shlex.split(line)
    except ValueError as error:
        raise CommandError(f"{line}: {error}") from None
    command = DOT_COMMANDS.get(name)
    if command is None:
        raise CommandError(f"unknown command {name}; .help lists them")
    command.run(session, words)


def _tables(session: Session, words: Sequence[str]) -> None:
    pattern = words[0].lower() if words else "*"
    rows = [row for row in relations(session.connection) if fnmatchcase(row[2].lower(), pattern)]
    MODES[session.mode](session.output, ("schema", "kind", "name"), rows, 0)


def _schema(session: Session, words: Sequence[str]) -> None:
    from quereus_store.api.dumping import schema_statements

    wanted = {word.lower() for word in words}
    databases = ("main", *session.connection.database.engine.attachments.databases)
    for item in chain.from_iterable(schema_statements(session.connection, name) for name in databases):
        if not wanted or {item.name.lower(), item.table.lower()} & wanted:
            print(f"{item.sql};", file=session.output)


def _import(session: Session, words: Sequence[str]) -> None:
    from quereus_store.cli.transfer.formats import STANDARD
    from quereus_store.cli.transfer.importer import ImportOptions, import_file

    if len(words) not in (2, 3):
        raise CommandError("usage: .import DATA TABLE [FORMAT]")
    path = Path(words[0])
    if path == STANDARD:
        raise CommandError("statements come from standard input; quereus import reads data from it")
    options = ImportOptions(format=words[2] if len(words) == 3 else None)
    report = import_file(session.connection, words[1], path, options)
    print(report.summary(), file=session.output)


def _export(session: Session, words: Sequence[str]) -> None:
    from quereus_store.cli.transfer.exporter import export_file
    from quereus_store.cli.transfer.formats import STANDARD

    if len(words) not in (2, 3):
        raise CommandError('usage: .export TABLE DATA [FORMAT] or .export "select …" DATA [FORMAT]')
    kind = words[2] if len(words) == 3 else None
    count = export_file(session.connection, words[0], Path(words[1]), format=kind)
    if Path(words[1]) != STANDARD:
        print(f"{count:,} rows to {words[1]}", file=session.output)


def _read(session: Session, words: Sequence[str]) -> None:
    from quereus_store.cli.commands.run import read_script

    for word in words:
        session.run_script(read_script(Path(word)), word)


def _dump(session: Session, words: Sequence[str]) -> None:
    from quereus_store.api.dumping import dump_database

    dump_database(session.connection, session.output)


def _check(session: Session, words: Sequence[str]) -> None:
    from quereus_store.cli.checking import check_database

    check_database(session.connection, session.output)


def _refresh(session: Session, words: Sequence[str]) -> None:
    from quereus_store.cli.refreshing import refresh_views

    refresh_views(session.connection, session.output)


def _mode(session: Session, words: Sequence[str]) -> None:
    if not words:
        print(session.mode, file=session.output)
    elif words[0] not in MODES:
        raise CommandError(f"unknown mode {words[0]}; one of {', '.join(MODES)}")
    else:
        session.mode = words[0]


def _limit(session: Session, words: Sequence[str]) -> None:
    if words and not words[0].isdigit():
        raise CommandError("usage: .limit ROWS (0 for all)")
    if words:
        session.limit = int(words[0])
    else:
        print(session.limit, file=session.output)


def _timer(session: Session, words: Sequence[str]) -> None:
    if words not in (["on"], ["off"], []):
        raise CommandError("usage: .timer on|off")
    session.timer = words == ["on"] if words else not session.timer


def _help(session: Session, words: Sequence[str]) -> None:
    width = max(len(command.usage) for command in DOT_COMMANDS.values())
    for command in dict.fromkeys(DOT_COMMANDS.values()):
        print(f"{command.usage:<{width}}  {command.help}", file=session.output)
    print("Everything else is SQL; a statement ends with `;`.", file=session.output)


def _quit(session: Session, words: Sequence[str]) -> None:
    raise Leave


_LEAVE = DotCommand(_quit, ".quit", "leave (also .exit, Ctrl-D)")

DOT_COMMANDS: Mapping[str, DotCommand] = MappingProxyType(
    {
        ".tables": DotCommand(_tables, ".tables [PATTERN]", "list tables and views"),
        ".schema": DotCommand(_schema, ".schema [TABLE]", "show the statements that make them"),
        ".import": DotCommand(_import, ".import DATA TABLE", "load a CSV, JSON or Parquet file"),
        ".export": DotCommand(_export, ".export TABLE DATA", "write a table or query to such a file"),
        ".read": DotCommand(_read, ".read SCRIPT", "run the statements of a file"),
        ".dump": DotCommand(_dump, ".dump", "print the database as SQL"),
        ".check": DotCommand(_check, ".check", "verify the database"),
        ".refresh": DotCommand(_refresh, ".refresh", "compute every materialized view anew"),
        ".mode": DotCommand(_mode, ".mode [MODE]", f"how rows are shown: {', '.join(MODES)}"),
        ".limit": DotCommand(_limit, ".limit [ROWS]", "rows shown of one result, 0 for all"),
        ".timer": DotCommand(_timer, ".timer on|off", "show the time of each statement"),
        ".help": DotCommand(_help, ".help", "this list"),
        ".quit": _LEAVE,
        ".exit": _LEAVE,
    }
)
