"""``quereus dump FILE``: the whole database as SQL."""

from __future__ import annotations

import argparse
import sys

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE

HELP = "print the database as SQL that makes it anew"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument("--schema-only", action="store_true", help="leave out the rows")


def run(options: argparse.Namespace) -> int:
    """Print the dump to standard output."""
    from quereus_store.api.dumping import dump_database

    # A script is read as UTF-8, wherever it was written.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8")
    with open_database(options.file, options.backend, must_exist=True) as connection:
        dump_database(connection, sys.stdout, rows=not options.schema_only)
    return EXIT_DONE
