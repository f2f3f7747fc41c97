"""``quereus refresh FILE``: compute every materialized view anew."""

from __future__ import annotations

import argparse
import sys

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE, EXIT_REFUSED

HELP = "compute every materialized view anew, stale ones too"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Refresh all views and print what became of each."""
    from quereus_store.cli.refreshing import refresh_views

    with open_database(options.file, options.backend, must_exist=True) as connection:
        return EXIT_DONE if refresh_views(connection, sys.stdout) else EXIT_REFUSED
