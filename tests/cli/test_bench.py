"""The benchmark: equal answers are demanded, the best round counts, the figures are written."""

import io
import json
import re
import sqlite3
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quereus_store.cli.bench.case import Case
from quereus_store.cli.bench.cases import CASES
from quereus_store.cli.bench.chart import Bars, bar_chart
from quereus_store.cli.bench.data import make_data
from quereus_store.cli.bench.engines import ENGINES, Database, Engine
from quereus_store.cli.bench.floor import Floor
from quereus_store.cli.bench.growth import Growth, measure_growth
from quereus_store.cli.bench.report import FloorTable, LineTable, ResultTable
from quereus_store.cli.bench.runner import Timing, ratio, run_case
from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.main import build_parser, main

DATA = make_data(10)


def sqlite_engine(name: str, rival: str | None = None) -> Engine:
    return Engine(name, name, lambda folder: sqlite3.connect(":memory:", isolation_level=None), rival, False)


def test_data_are_the_same_every_time() -> None:
    assert make_data(100) == make_data(100)


def test_engines_that_answer_differently_stop_the_benchmark(tmp_path: Path) -> None:
    databases = [Database(sqlite_engine(name), tmp_path / name) for name in ("one", "two")]
    case = Case("odd", "", lambda database, data: [(database.engine.name,)])
    with pytest.raises(CommandError, match="odd: two and one give different rows"):
        run_case(case, databases, DATA, repeat=1)


def test_the_order_of_rows_is_no_difference(tmp_path: Path) -> None:
    databases = [Database(sqlite_engine(name), tmp_path / name) for name in ("one", "two")]
    rows = {"one": [(1,), (2,)], "two": [(2,), (1,)]}
    case = Case("same", "", lambda database, data: rows[database.engine.name])
    assert set(run_case(case, databases, DATA, repeat=2)) == {"one", "two"}


def test_a_ratio_is_the_rival_s_time_over_ours() -> None:
    timings = {"ours": Timing(0.5), "theirs": Timing(2.0), "absent": Timing(None, "not supported")}
    assert ratio(timings, "ours", "theirs") == 4.0
    assert ratio(timings, "absent", "theirs") is None
    assert ratio(timings, "ours", None) is None


def test_a_case_gets_two_rounds_at_least_and_no_more_when_its_time_is_over(tmp_path: Path) -> None:
    databases = [Database(sqlite_engine(name), tmp_path / name) for name in ("one", "two")]
    runs: list[str] = []
    case = Case("turns", "", lambda database, data: runs.append(database.engine.name))
    run_case(case, databases, DATA, repeat=5, seconds=0.0)
    assert runs == ["one", "two", "one", "two"]
    run_case(case, databases, DATA, repeat=3)
    assert len(runs) == 4 + 2 * 3


def test_lines_of_a_table_are_printed_one_by_one() -> None:
    stream = io.StringIO()
    table = LineTable(stream, "title", [("work", 8), ("ms", 4)])
    before = stream.getvalue()
    table.line(["scan", "1.5"])
    assert before == "\ntitle\nwork        ms\n──────────────\n"
    assert stream.getvalue() == before + "scan       1.5\n"


def test_growth_is_measured_by_the_power_of_the_number_of_rows(tmp_path: Path) -> None:
    counted = Case("count", "", lambda database, data: [(sum(len(data.items) for _ in data.items),)])
    (growth,) = measure_growth(sqlite_engine("one"), [counted], tmp_path, 1, lambda *_: None, (10, 100))
    assert (growth.case, growth.sizes, len(growth.seconds)) == ("count", (10, 100), 2)
    assert Growth("squares", (10, 1000), (0.1, 1000.0)).exponent == pytest.approx(2.0)


def test_the_chart_is_well_formed() -> None:
    svg = bar_chart("Speed < 1", ["a", "b"], [Bars("scan & sort", [2.0, None]), Bars("load", [0.1, 40.0])])
    texts = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]
    assert {"Speed < 1", "scan & sort", "2.00×", "0.10×", "40.00×"} <= set(texts)


def test_the_command_writes_figures_for_every_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "--rows", "200", "--repeat", "1", "--no-floor", "--engines", "lmdb,sqlite-file"]
    assert main([*words, "--output", str(tmp_path / "out")]) == 0
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    assert list(figures["cases"]) == [case.name for case in CASES]
    assert all(case["seconds"]["lmdb"] for case in figures["cases"].values())
    assert (tmp_path / "out" / "ratios.svg").exists()
    assert "full scan" in capsys.readouterr().out


def test_missed_goals_are_marked() -> None:
    """A ratio, the microseconds of a single row, and the raw cost of the storage."""
    ours, theirs = sqlite_engine("ours", "theirs"), sqlite_engine("theirs")
    case = Case(
        "load",
        "",
        lambda database, data: None,
        operations=2,
        goals={"ours": 2.0},
        microseconds=15,
        raw_times=2,
    )
    for seconds, marks in ((0.00002, []), (0.00004, ["20.0", "1.00 (2)"])):
        stream = io.StringIO()
        table = ResultTable(stream, [case], [ours, theirs], 100)
        table.line(case, {"ours": Timing(seconds), "theirs": Timing(0.00004)})
        assert re.findall(r"! (\S+(?: \(\S+\))?)", stream.getvalue().splitlines()[-1]) == marks
    for floor, mark in ((0.1, "! 3.0 (2)"), (0.2, "1.5 (2)")):
        stream = io.StringIO()
        floors = FloorTable(stream, [case], {"load": {"lmdb": Timing(0.3), "leveldb": Timing(9.0)}})
        floors.line(Floor("put", floor, "load", "lmdb"))
        assert stream.getvalue().endswith(f"  {mark}\n")
        floors.line(Floor("put", 0.1, "load", "leveldb"))
        assert stream.getvalue().endswith("  90.0\n")


def test_the_floor_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The raw storage below each change and load, and the codec alone, with the engine's time beside it."""
    words = ["bench", "--rows", "300", "--repeat", "1", "--output", str(tmp_path / "out"), "--only", "load"]
    assert main(words) == 0
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    floor = figures["floor"]
    assert all(seconds > 0 for seconds in floor.values())
    assert {name.split(":")[0] for name in floor} == {"LMDB", "LevelDB", "codec"}
    assert any(re.fullmatch(r"LMDB: put the same 6\d\d keys and values", name) for name in floor)
    assert "codec: encode integer keys" in floor
    lines = capsys.readouterr().out.splitlines()
    (raw,) = [line for line in lines if line.startswith("LMDB: put the same 6")]
    assert re.search(r"[\d.]+ \(2\)$", raw)


def test_it_is_the_best_of_five_over_a_hundred_thousand_rows() -> None:
    options = build_parser().parse_args(["bench"])
    assert (options.repeat, options.rows) == (5, 100_000)
    assert [engine.name for engine in ENGINES] == [
        "memory",
        "lmdb",
        "leveldb",
        "sqlite-memory",
        "sqlite-file",
    ]
