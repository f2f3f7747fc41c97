"""``quereus explain FILE SQL``: the plan of a statement, as text or as a picture."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE

HELP = "show the plan of a statement, as text or as a picture"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument(
        "sql", metavar="SQL", help="a query, INSERT, UPDATE or DELETE; - reads standard input"
    )
    parser.add_argument(
        "--analyze",
        action="store_true",
        help="run the statement and show measured rows and times; its changes are rolled back",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", metavar="OUT", help="write a self-contained page (- for standard output)")
    form.add_argument("--svg", metavar="OUT", help="write a picture (- for standard output)")
    form.add_argument("--json", action="store_true", help="print the tree as JSON")


def run(options: argparse.Namespace) -> int:
    """Print or write the plan."""
    from quereus_store.cli.plans.drawing import draw
    from quereus_store.cli.plans.listing import listing
    from quereus_store.cli.plans.page import page

    sql = sys.stdin.read() if options.sql == "-" else options.sql
    with open_database(options.file, options.backend, must_exist=True) as connection:
        connection.begin()
        try:
            plan = connection.explain(sql, analyze=options.analyze)
        finally:
            connection.rollback()
    if options.html:
        _write(options.html, page(plan, sql))
    elif options.svg:
        _write(options.svg, draw(plan))
    elif options.json:
        print(json.dumps(plan.as_dict(), indent=2))
    else:
        print(listing(plan))
    return EXIT_DONE


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")
