"""How time grows with rows: the queries of the benchmark over tables of three sizes.

The exponent is that of the power of the number of rows which joins the smallest table's time with the
largest one's: about 1 for what reads every row, a little above for what sorts, 0 for what finds its
rows by key.  An exponent near 2 would tell of a quadratic algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quereus_store.cli.bench.case import Case, set_up
from quereus_store.cli.bench.data import make_data
from quereus_store.cli.bench.engines import Database, Engine
from quereus_store.cli.bench.runner import run_case

SIZES = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds of one query over tables of each size."""

    case: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The power of the number of rows that the time follows from the first size to the last."""
        return math.log(self.seconds[-1] / self.seconds[0]) / math.log(self.sizes[-1] / self.sizes[0])


def measure_growth(
    engine: Engine,
    cases: Sequence[Case],
    folder: Path,
    repeat: int,
    progress: Callable[[str, int, int], None],
    sizes: tuple[int, ...] = SIZES,
) -> list[Growth]:
    """Time cases over tables of all sizes, the best of ``repeat`` rounds each."""
    times: dict[str, list[float]] = {case.name: [] for case in cases}
    for number, size in enumerate(sizes):
        progress(f"{size:,} rows", number, len(sizes))
        data = make_data(size)
        database = Database(engine, folder / f"growth-{size}")
        set_up(database, data)
        for case in cases:
            timing = run_case(case, [database], data, repeat)[engine.name]
            if timing.seconds is not None:
                times[case.name].append(timing.seconds)
        database.close()
    progress("growth", len(sizes), len(sizes))
    return [
        Growth(name, sizes, tuple(seconds)) for name, seconds in times.items() if len(seconds) == len(sizes)
    ]
