"""``quereus run FILE SCRIPT.sql``: run a script and stop at its first error."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE, EXIT_REFUSED, CommandError
from quereus_store.cli.results import MODES
from quereus_store.cli.session import Session

HELP = "run the statements of a file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument("script", metavar="SCRIPT", help="file of SQL statements (UTF-8)")
    parser.add_argument(
        "--mode", choices=MODES, help="how rows are shown (default: table on a terminal, else csv)"
    )
    parser.add_argument("--timer", action="store_true", help="show the time of each statement")


def run(options: argparse.Namespace) -> int:
    """Run the script; statements before a failing one keep their effect."""
    text = read_script(Path(options.script))
    mode = options.mode or ("table" if sys.stdout.isatty() else "csv")
    with open_database(options.file, options.backend) as connection:
        session = Session(connection, mode=mode, timer=options.timer)
        return EXIT_DONE if session.run_script(text, options.script) else EXIT_REFUSED


def read_script(path: Path) -> str:
    """Read a file of SQL.

    :raises CommandError: when it is not UTF-8; names the line.
    """
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CommandError(f"{path}: line {line}: byte 0x{data[error.start]:02x} is not UTF-8") from None
