"""``quereus bench``: time the same SQL on every storage and on ``sqlite3``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from quereus_store.cli.diagnostics import EXIT_DONE, CommandError

if TYPE_CHECKING:
    from quereus_store.cli.bench.case import Case
    from quereus_store.cli.bench.data import Data
    from quereus_store.cli.bench.engines import Engine
    from quereus_store.cli.bench.floor import Floor
    from quereus_store.cli.bench.growth import Growth
    from quereus_store.cli.bench.runner import Results

HELP = "time the same SQL on memory, LMDB, LevelDB and sqlite3"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the table (default: 100,000)")
    parser.add_argument("--repeat", type=int, default=5, help="rounds, the best of which counts (default: 5)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        help="time of a case after which it gets no further round, but for the second (default: 2)",
    )
    parser.add_argument("--only", action="append", metavar="TEXT", help="cases whose name contains TEXT")
    parser.add_argument("--engines", metavar="NAMES", help="engines to run, separated by commas")
    parser.add_argument("--no-floor", action="store_true", help="leave out the raw costs")
    parser.add_argument(
        "--memory-rows", type=int, default=0, metavar="N", help="also measure the memory of a scan of N rows"
    )
    parser.add_argument(
        "--reopen-rows",
        type=int,
        default=0,
        metavar="N",
        help="also measure opening a file with fifty maintained tables over N rows",
    )
    parser.add_argument(
        "--growth",
        action="store_true",
        help="also time the queries in memory over 10,000, 100,000 and 1,000,000 rows",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("bench/results"), help="folder for the figures and the chart"
    )
    parser.add_argument("--folder", type=Path, help="where the databases live while it runs")


def run(options: argparse.Namespace) -> int:
    """Run the benchmark, print each figure when it is measured, write all of them."""
    from quereus_store.cli.bench.data import make_data
    from quereus_store.cli.bench.memory import measure
    from quereus_store.cli.bench.reopening import measure_reopening
    from quereus_store.cli.bench.report import as_chart, as_json

    engines, cases = _engines(options), _cases(options)
    data = make_data(options.rows)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        results = _time_cases(options, cases, engines, data, folder)
        floors = [] if options.no_floor else _time_floors(options, cases, results, data, folder)
        memory = measure(folder, options.memory_rows) if options.memory_rows else None
        if memory:
            print(
                f"streamed scan of {memory['rows']:,.0f} rows on LMDB: {memory['above_idle_mb']:.1f} MB "
                "above the idle process"
            )
        if options.reopen_rows:
            reopened = measure_reopening(folder, options.reopen_rows)
            print(
                f"fifty maintained tables over {reopened['rows']:,.0f} rows on LMDB: open in "
                f"{reopened['open'] * 1000:.0f} ms, the first read {reopened['first_read'] * 1000:.0f} ms, "
                f"the first change {reopened['first_change'] * 1000:.0f} ms"
            )
        growths = _time_growth(options, cases, folder) if options.growth else []

    options.output.mkdir(parents=True, exist_ok=True)
    figures, chart = options.output / "figures.json", options.output / "ratios.svg"
    figures.write_text(
        as_json(cases, engines, results, floors, memory, growths, options.rows), encoding="utf-8"
    )
    chart.write_text(as_chart(cases, engines, results, options.rows), encoding="utf-8")
    print(f"figures in {figures}, chart in {chart}")
    return EXIT_DONE


def _engines(options: argparse.Namespace) -> list[Engine]:
    from quereus_store.cli.bench.engines import ENGINES

    names = [engine.name for engine in ENGINES]
    wanted = options.engines.split(",") if options.engines else names
    if not set(wanted) <= set(names):
        raise CommandError(f"unknown engine; there are {', '.join(names)}")
    return [engine for engine in ENGINES if engine.name in wanted]


def _cases(options: argparse.Namespace) -> list[Case]:
    from quereus_store.cli.bench.cases import CASES

    cases = [case for case in CASES if not options.only or any(text in case.name for text in options.only)]
    if not cases:
        raise CommandError(f"no such case; there are {', '.join(case.name for case in CASES)}")
    return cases


def _time_cases(
    options: argparse.Namespace, cases: list[Case], engines: list[Engine], data: Data, folder: Path
) -> Results:
    from quereus_store.cli.bench.case import set_up
    from quereus_store.cli.bench.engines import Database
    from quereus_store.cli.bench.report import ResultTable, print_comparisons
    from quereus_store.cli.bench.runner import run_case

    databases = [Database(engine, folder / engine.name) for engine in engines]
    for database in databases:
        set_up(database, data)
    table = ResultTable(sys.stdout, cases, engines, options.rows)
    results: Results = {}
    for case in cases:
        results[case.name] = run_case(case, databases, data, options.repeat, options.seconds)
        table.line(case, results[case.name])
    for database in databases:
        database.close()
    print_comparisons(sys.stdout, cases, engines, results)
    return results


def _time_floors(
    options: argparse.Namespace, cases: list[Case], results: Results, data: Data, folder: Path
) -> list[Floor]:
    from quereus_store.cli.bench.codec import measure_codec
    from quereus_store.cli.bench.floor import measure_floor
    from quereus_store.cli.bench.report import FloorTable
    from quereus_store.cli.bench.write_cases import WRITE_CASES
    from quereus_store.cli.bench.write_floor import measure_write_floor

    changes = [case for case in cases if case in WRITE_CASES]
    repeat = min(options.repeat, 3)
    table = FloorTable(sys.stdout, cases, results)
    floors: list[Floor] = []
    for floor in chain(
        measure_floor(data, folder / "floor", repeat),
        measure_codec(data, repeat),
        measure_write_floor(changes, data, folder / "changes", repeat),
    ):
        floors.append(floor)
        table.line(floor)
    return floors


def _time_growth(options: argparse.Namespace, cases: list[Case], folder: Path) -> list[Growth]:
    from quereus_store.cli.bench.case import nothing
    from quereus_store.cli.bench.engines import ENGINES
    from quereus_store.cli.bench.growth import measure_growth
    from quereus_store.cli.bench.report import print_growth
    from quereus_store.cli.progress import progress_bar

    queries = [case for case in cases if case.operations == 0 and case.before is nothing]
    with progress_bar("cases") as progress:
        growths = measure_growth(ENGINES[0], queries, folder, min(options.repeat, 3), progress)
    print_growth(sys.stdout, f"queries on {ENGINES[0].title}", growths)
    return growths
