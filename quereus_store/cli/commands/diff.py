"""``quereus diff FILE SCHEMA.sql``: what it takes to make a database as a file declares it."""

from __future__ import annotations

import argparse

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.declaring import Refused, declare, differences
from quereus_store.cli.diagnostics import EXIT_DONE, EXIT_REFUSED

HELP = "print the statements that make a database as a schema file declares it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument("schema", metavar="SCHEMA", help="file of DECLARE SCHEMA statements (UTF-8)")
    parser.epilog = "Exit status 0: nothing differs. 1: something does, or the file is refused."


def run(options: argparse.Namespace) -> int:
    """Print the statements; the exit status tells whether there are any."""
    with open_database(options.file, options.backend, must_exist=True) as connection:
        try:
            steps = [
                step
                for schema in declare(connection, options.schema)
                for step in differences(connection, schema, options.schema)
            ]
        except Refused:
            return EXIT_REFUSED
    for step in steps:
        print(f"{step};")
    return EXIT_REFUSED if steps else EXIT_DONE
