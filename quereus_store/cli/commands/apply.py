"""``quereus apply FILE SCHEMA.sql``: make a database as a file declares it, all of it or nothing."""

from __future__ import annotations

import argparse
import sys

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.declaring import Refused, declare, differences
from quereus_store.cli.diagnostics import EXIT_DONE, EXIT_REFUSED, report
from quereus_store.errors import Error

HELP = "make a database as a schema file declares it"
_POLICIES = ("allow", "require-hint", "deny")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument("schema", metavar="SCHEMA", help="file of DECLARE SCHEMA statements (UTF-8)")
    parser.add_argument("--seed", action="store_true", help="insert seed rows whose keys are not there")
    parser.add_argument(
        "--rename-policy",
        choices=_POLICIES,
        default="allow",
        help="what a rename hint is for: obeyed (default), demanded, or ignored",
    )
    parser.add_argument(
        "--allow-destructive", action="store_true", help="let maintained tables move to another module"
    )
    parser.add_argument("--quiet", action="store_true", help="do not print the statements that are run")
    parser.epilog = (
        "Tables and all else that the file does not declare are dropped, with their rows."
        " `quereus diff` prints the same statements and runs none."
    )


def run(options: argparse.Namespace) -> int:
    """Migrate in one transaction, printing what is done once it is done."""
    settings = (
        f"options (rename_policy = '{options.rename_policy}',"
        f" allow_destructive = {str(options.allow_destructive).lower()})"
    )
    seed = " with seed" if options.seed else ""
    steps: list[str] = []
    with open_database(options.file, options.backend) as connection:
        try:
            schemas = declare(connection, options.schema)
            with connection.transaction():
                for schema in schemas:
                    steps += differences(connection, schema, options.schema)
                    connection.execute(f"apply schema {schema.name} {settings}{seed}")
        except Refused:
            return EXIT_REFUSED
        except Error as error:
            report(error, sys.stderr)
            return EXIT_REFUSED
    if not options.quiet:
        for step in steps:
            print(f"{step};")
    return EXIT_DONE
