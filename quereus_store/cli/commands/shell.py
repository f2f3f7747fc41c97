"""``quereus [FILE]``: the interactive shell, or a script on standard input."""

from __future__ import annotations

import argparse
import sys

from quereus_store.cli.connecting import MEMORY, add_backend_option, open_database
from quereus_store.cli.diagnostics import EXIT_DONE, EXIT_REFUSED
from quereus_store.cli.results import MODES
from quereus_store.cli.session import Session

HELP = "open the shell on a database file (in memory without one)"

_ROWS_ON_SCREEN = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", nargs="?", default=MEMORY, help="database file")
    add_backend_option(parser)
    parser.add_argument(
        "-c",
        "--command",
        metavar="SQL",
        action="append",
        help="run these statements, or a command such as .schema, and leave; may be repeated",
    )
    parser.add_argument(
        "--mode", choices=MODES, help="how rows are shown (default: table on a terminal, else csv)"
    )
    parser.add_argument("--timer", action="store_true", help="show the time of each statement")


def run(options: argparse.Namespace) -> int:
    """Open the shell; reads statements from standard input when that is no terminal."""
    on_screen = sys.stdout.isatty()
    with open_database(options.file, options.backend) as connection:
        session = Session(
            connection,
            mode=options.mode or ("table" if on_screen else "csv"),
            limit=_ROWS_ON_SCREEN if on_screen else 0,
            timer=options.timer,
        )
        from quereus_store.cli.shell.repl import run_commands, run_piped, run_terminal

        if options.command is not None:
            return EXIT_DONE if run_commands(session, options.command) else EXIT_REFUSED
        if sys.stdin.isatty():
            run_terminal(session, options.file)
            return EXIT_DONE
        return EXIT_DONE if run_piped(session, sys.stdin.read()) else EXIT_REFUSED
