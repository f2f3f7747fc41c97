"""``quereus backup FILE COPY``: a compact copy of a database, while others may use it."""

from __future__ import annotations

import argparse

from quereus_store.cli.connecting import BACKENDS, add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE

HELP = "write a compact copy of the database, on the same storage or another one"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument("copy", metavar="COPY", help="file or folder to write; nothing may be there yet")
    parser.add_argument("--to", choices=BACKENDS, help="storage of the copy (default: that of FILE)")


def run(options: argparse.Namespace) -> int:
    """Copy, and tell the sizes."""
    with open_database(options.file, options.backend, must_exist=True) as connection:
        connection.backup(options.copy, backend=options.to)
        name = options.to or connection.database.backend
    print(f"{options.copy}: a copy of {options.file}, on {name}")
    return EXIT_DONE
