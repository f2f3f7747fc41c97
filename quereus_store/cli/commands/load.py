"""``quereus import FILE TABLE DATA``: load a CSV, JSON or Parquet file."""

from __future__ import annotations

import argparse
from pathlib import Path

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE
from quereus_store.cli.progress import progress_bar
from quereus_store.cli.transfer.formats import DATA_HELP, add_format_option

HELP = "load a CSV, JSON lines, JSON or Parquet file into a table, which is created when missing"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument("table", metavar="TABLE", help="table to load into")
    parser.add_argument("data", metavar="DATA", type=Path, help=DATA_HELP.format("input"))
    add_format_option(parser)
    parser.add_argument("--encoding", help="encoding of the file (default: by its mark, else utf-8)")
    parser.add_argument("--delimiter", help="field separator of a CSV file (default: guessed)")
    parser.add_argument(
        "--null",
        action="append",
        metavar="TEXT",
        help="a field that stands for NULL (default: the empty field; may be repeated)",
    )
    parser.add_argument("--key", metavar="COLUMNS", help="key of a new table, separated by commas")
    parser.add_argument("--rejects", type=Path, help="file for refused rows (default: beside DATA)")


def run(options: argparse.Namespace) -> int:
    """Load the file; refused rows are reported and do not fail the command."""
    from quereus_store.cli.transfer.importer import ImportOptions, import_file

    settings = ImportOptions(
        format=options.format,
        encoding=options.encoding,
        delimiter={"\\t": "\t", "tab": "\t"}.get(options.delimiter, options.delimiter),
        nulls=tuple(options.null or ("",)),
        key=tuple(name.strip() for name in options.key.split(",")) if options.key else (),
        rejects=options.rejects,
    )
    with open_database(options.file, options.backend) as connection, progress_bar() as progress:
        report = import_file(connection, options.table, options.data, settings, progress)
    print(report.summary())
    return EXIT_DONE
