"""``quereus export FILE TABLE DATA``: write a table or query to a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE
from quereus_store.cli.transfer.formats import DATA_HELP, STANDARD, add_format_option

HELP = "write a table, view or query to a CSV, JSON lines, JSON or Parquet file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument("source", metavar="TABLE", help="table or view, or a query: 'select …'")
    parser.add_argument("data", metavar="DATA", type=Path, help=DATA_HELP.format("output"))
    add_format_option(parser)
    parser.add_argument("--null", default="", metavar="TEXT", help=r"text for NULL in CSV, e.g. '\N'")


def run(options: argparse.Namespace) -> int:
    """Write the file."""
    from quereus_store.cli.progress import progress_bar
    from quereus_store.cli.transfer.exporter import export_file

    with (
        open_database(options.file, options.backend, must_exist=True) as connection,
        progress_bar("rows") as progress,
    ):
        count = export_file(
            connection,
            options.source,
            options.data,
            format=options.format,
            null=options.null,
            progress=lambda rows: progress("writing", rows, rows),
        )
    if options.data == STANDARD:
        print(f"{count:,} rows", file=sys.stderr)
    else:
        print(f"{count:,} rows to {options.data}")
    return EXIT_DONE
