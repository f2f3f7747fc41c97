"""``quereus demo``: load real data, ask questions, keep dashboards, close, open again, verify."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quereus_store.cli.connecting import BACKENDS, open_database
from quereus_store.cli.diagnostics import EXIT_DONE, EXIT_REFUSED, CommandError

if TYPE_CHECKING:
    from rich.console import Console

    from quereus_store import Connection

CACHE_SIZE = 512 * 2**20
"""Bytes for decoded rows: an analyst who asks a dozen questions of one table wants it held."""

HELP = "load 336,776 flights into a database file, ask questions of them, stream some under dashboards"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--backend", choices=BACKENDS, default="lmdb", help="storage (default: lmdb)")
    parser.add_argument("--file", type=Path, help="keep the database here (default: a temporary file)")


def run(options: argparse.Namespace) -> int:
    """Run the demo from beginning to end."""
    from rich.console import Console

    from quereus_store.cli.demo.streaming import stream

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    started = time.perf_counter()
    if options.file is not None and options.file.exists():
        raise CommandError(f"{options.file} exists; the demo wants a fresh file")
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "flights.qdb"
        with open_database(str(path), options.backend, cache_size=CACHE_SIZE) as connection:
            counts = load(connection, console)
            console.print(f"The database takes {size_of(path) / 1e6:.0f} MB on disk.\n")
            answers = ask(connection, console)
            in_order = stream(connection, console)
        console.print("[bold]Closed. Opening the file again …[/bold]")
        with open_database(str(path), options.backend, cache_size=CACHE_SIZE) as connection:
            in_order = verify(connection, console, counts, answers) and in_order
    console.print(f"The demo took {time.perf_counter() - started:.1f} s.")
    return EXIT_DONE if in_order else EXIT_REFUSED


def load(connection: Connection, console: Console) -> dict[str, int]:
    """Create and fill all tables, then the indexes; returns rows by table."""
    from quereus_store.cli.demo.loading import data_folder, load_table
    from quereus_store.cli.demo.schema import INDEXES, TABLES
    from quereus_store.cli.progress import progress_bar

    folder = data_folder()
    expected = {"airlines": 16, "airports": 1458, "planes": 3322, "weather": 26_115, "flights": 336_776}
    counts: dict[str, int] = {}
    started = time.perf_counter()
    with progress_bar("rows") as progress:

        def step(name: str, rows: int) -> None:
            progress(f"loading {name}", rows, max(rows, expected[name]))

        for table in TABLES:
            counts[table.name] = load_table(connection, table, folder, partial(step, table.name))
        loaded = time.perf_counter()
        for number, statement in enumerate(INDEXES, 1):
            connection.execute(statement)
            progress("building indexes", number, len(INDEXES))
    indexed = time.perf_counter()
    total = sum(counts.values())
    seconds = loaded - started
    console.print(
        f"[bold]{total:,} rows[/bold] in {len(counts)} tables in {seconds:.1f} s "
        f"({total / seconds:,.0f} rows a second), {len(INDEXES)} indexes in {indexed - loaded:.1f} s."
    )
    return counts


def ask(connection: Connection, console: Console) -> dict[str, list[tuple[object, ...]]]:
    """Run the questions and print their answers; returns the answers by title."""
    from rich.syntax import Syntax

    from quereus_store.cli.demo.questions import QUESTIONS
    from quereus_store.cli.results import write_table

    answers: dict[str, list[tuple[object, ...]]] = {}
    for number, question in enumerate(QUESTIONS, 1):
        started = time.perf_counter()
        cursor = connection.execute(question.sql)
        rows = cursor.fetchall()
        milliseconds = (time.perf_counter() - started) * 1000
        console.print(f"[bold]{number}. {question.title}[/bold]  [dim]{milliseconds:.0f} ms[/dim]")
        console.print(Syntax(question.sql, "sql", background_color="default", word_wrap=True))
        write_table(sys.stdout, [column[0] for column in cursor.description or ()], rows, 0)
        console.print()
        answers[question.title] = rows
    return answers


def verify(
    connection: Connection,
    console: Console,
    counts: dict[str, int],
    answers: dict[str, list[tuple[object, ...]]],
) -> bool:
    """Check the reopened file: its consistency, its schema, its rows, and an answer of before."""
    from quereus_store.api.dumping import schema_statements
    from quereus_store.cli.checking import check_database
    from quereus_store.cli.demo.questions import QUESTIONS

    for item in schema_statements(connection):
        console.print(f"[dim]{item.sql};[/dim]", soft_wrap=True)
    in_order = check_database(connection, sys.stdout)
    found = {name: connection.execute(f"select count(*) from {name}").fetchone()[0] for name in counts}
    same_rows = found == counts
    question = QUESTIONS[0]
    same_answer = connection.execute(question.sql).fetchall() == answers[question.title]
    console.print(f"Rows by table: {found} – {'all there' if same_rows else f'expected {counts}'}.")
    console.print(f"Question 1 has {'the same answer' if same_answer else 'ANOTHER ANSWER'} as before.")
    return in_order and same_rows and same_answer


def size_of(path: Path) -> int:
    """Bytes on disk of a database file or folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_blocks * 512 for file in files if file.is_file())
