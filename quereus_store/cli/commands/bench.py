"""``quereus bench``: time the same SQL on every storage and on ``sqlite3``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from quereus_store.cli.diagnostics import EXIT_DONE, CommandError

HELP = "time the same SQL on memory, LMDB, LevelDB and sqlite3"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the table (default: 100,000)")
    parser.add_argument("--repeat", type=int, default=5, help="rounds, the best of which counts (default: 5)")
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
    """Run the benchmark, print the tables, write the figures."""
    from quereus_store.cli.bench.case import nothing, set_up
    from quereus_store.cli.bench.cases import CASES
    from quereus_store.cli.bench.codec import measure_codec
    from quereus_store.cli.bench.data import make_data
    from quereus_store.cli.bench.engines import ENGINES, Database
    from quereus_store.cli.bench.floor import measure_floor
    from quereus_store.cli.bench.growth import measure_growth
    from quereus_store.cli.bench.memory import measure
    from quereus_store.cli.bench.reopening import measure_reopening
    from quereus_store.cli.bench.report import (
        as_chart,
        as_json,
        print_comparisons,
        print_floor,
        print_growth,
        print_results,
    )
    from quereus_store.cli.bench.runner import run_cases
    from quereus_store.cli.bench.write_cases import WRITE_CASES
    from quereus_store.cli.bench.write_floor import measure_write_floor
    from quereus_store.cli.progress import progress_bar

    wanted = options.engines.split(",") if options.engines else [engine.name for engine in ENGINES]
    engines = [engine for engine in ENGINES if engine.name in wanted]
    if len(engines) != len(wanted):
        raise CommandError(f"unknown engine; there are {', '.join(engine.name for engine in ENGINES)}")
    cases = [case for case in CASES if not options.only or any(text in case.name for text in options.only)]
    if not cases:
        raise CommandError(f"no such case; there are {', '.join(case.name for case in CASES)}")
    data = make_data(options.rows)
    with tempfile.TemporaryDirectory(dir=options.folder) as name, progress_bar("cases") as progress:
        folder = Path(name)
        databases = [Database(engine, folder / engine.name) for engine in engines]
        for database in databases:
            set_up(database, data)
        results = run_cases(cases, databases, data, options.repeat, progress)
        for database in databases:
            database.close()
        floors = []
        if not options.no_floor:
            floors = measure_floor(data, folder / "floor", options.repeat) + measure_codec(
                data, options.repeat
            )
            changes = [case for case in cases if case in WRITE_CASES]
            floors += measure_write_floor(changes, data, folder / "changes", options.repeat)
        memory = measure(folder, options.memory_rows) if options.memory_rows else None
        reopened = measure_reopening(folder, options.reopen_rows) if options.reopen_rows else None
        growths = []
        if options.growth:
            queries = [case for case in cases if case.operations == 0 and case.before is nothing]
            growths = measure_growth(ENGINES[0], queries, folder, min(options.repeat, 3), progress)

    print_results(sys.stdout, cases, engines, results, options.rows)
    print_comparisons(sys.stdout, cases, engines, results)
    if floors:
        print_floor(sys.stdout, floors, results)
    if memory:
        print(
            f"streamed scan of {memory['rows']:,.0f} rows on LMDB: {memory['above_idle_mb']:.1f} MB "
            "above the idle process"
        )
    if reopened:
        print(
            f"fifty maintained tables over {reopened['rows']:,.0f} rows on LMDB: open in "
            f"{reopened['open'] * 1000:.0f} ms, the first read {reopened['first_read'] * 1000:.0f} ms, "
            f"the first change {reopened['first_change'] * 1000:.0f} ms"
        )
    if growths:
        print_growth(sys.stdout, f"queries on {ENGINES[0].title}", growths)
    options.output.mkdir(parents=True, exist_ok=True)
    figures, chart = options.output / "figures.json", options.output / "ratios.svg"
    figures.write_text(
        as_json(cases, engines, results, floors, memory, growths, options.rows), encoding="utf-8"
    )
    chart.write_text(as_chart(cases, engines, results, options.rows), encoding="utf-8")
    print(f"figures in {figures}, chart in {chart}")
    return EXIT_DONE
