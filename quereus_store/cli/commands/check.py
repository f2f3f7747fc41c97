"""``quereus check FILE``: verify a database."""

from __future__ import annotations

import argparse
import sys

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE, EXIT_REFUSED

HELP = "verify rows against schema, keys, indexes and references"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Check the file; the exit status tells whether it is in order."""
    from quereus_store.cli.checking import check_database

    with open_database(options.file, options.backend, must_exist=True) as connection:
        return EXIT_DONE if check_database(connection, sys.stdout) else EXIT_REFUSED
