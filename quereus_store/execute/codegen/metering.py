"""Programs that measure themselves, for EXPLAIN ANALYZE.

A normal program has no counters.  One that is compiled with :class:`Meters` ends each operator's part of
a pipeline in a list, so that its rows can be counted, and tells a :class:`Profile` which operator is at
work::

    for batch0 in profile.batches(2, lambda: table0.scan(x0)):
        profile.enter(1)
        batch1 = [r0 for r0 in batch0 if r0[1] > p0]
        profile.leave(len(batch1))

There is one clock for all operators and one of them is running at any time, so the times are each
operator's own and add up to the whole.  A computed column costs where it is read.

``row_trace()`` also wants the rows themselves: ``Meters(keeps_rows=True)`` writes code that keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen.pipeline import Pipeline, column_ids
from quereus_store.execute.codegen.source import SourceModule
from quereus_store.plan.nodes import PlanNode

if TYPE_CHECKING:
    from quereus_store.execute.codegen.compiler import QueryCompiler


@dataclass(slots=True)
class Measure:
    """What one operator did: how often it was started, the rows it gave, the time that it took itself.

    ``kept`` are the rows, each batch with the time when it came, where they are kept.
    """

    runs: int = 0
    rows: int = 0
    nanoseconds: int = 0
    ended: float = 0.0
    kept: list[tuple[float, list[Any]]] = field(default_factory=list)


class Profile:
    """The measures of one run, by operator number; generated code calls it."""

    def __init__(self) -> None:
        self.measures: list[Measure] = []
        self._running = [Measure()]
        self._since = 0

    def start(self, number: int) -> None:
        """An operator begins anew."""
        self.measures[number].runs += 1

    def enter(self, number: int) -> None:
        """From now on it is this operator that works."""
        now = perf_counter_ns()
        self._running[-1].nanoseconds += now - self._since
        self._running.append(self.measures[number])
        self._since = now

    def leave(self, rows: int = 0) -> None:
        """The operator that works has given so many rows; the one before it goes on."""
        now = perf_counter_ns()
        measure = self._running.pop()
        measure.nanoseconds += now - self._since
        measure.rows += rows
        measure.ended = time()
        self._since = now

    def keep(self, number: int, rows: list[Any]) -> None:
        """Keep rows that an operator gave."""
        self.measures[number].kept.append((time(), rows))

    def batches(self, number: int, source: Callable[[], Iterable[Any]], counts: bool = True) -> Iterator[Any]:
        """The batches of an operator that has a source of its own; ``counts``: they are its rows."""
        measure = self.measures[number]
        measure.runs += 1
        iterator: Iterator[Any] | None = None
        while True:
            self.enter(number)
            batch = None
            try:
                if iterator is None:
                    iterator = iter(source())
                batch = next(iterator, None)
            finally:
                self.leave(0 if batch is None or not counts else len(batch))
            if batch is None:
                return
            yield batch

    def found(self, number: int, found: list[Any], single: bool) -> list[Any]:
        """What an index lookup gave for a batch of keys, counted."""
        measure = self.measures[number]
        measure.runs += len(found)
        measure.rows += len(found) - found.count(None) if single else sum(map(len, found))
        return found


class Meters:
    """Adds measuring to the pipelines of a program; ``rows`` and ``nanoseconds`` are those of the whole."""

    def __init__(self, keeps_rows: bool = False) -> None:
        self.profile = Profile()
        self.keeps_rows = keeps_rows
        self.rows = 0
        self.nanoseconds = 0
        self._numbers: dict[int, int] = {}
        self._nodes: list[PlanNode] = []
        # How much of a pipeline's prologue and statements per batch belongs to operators already measured.
        self._seen: dict[str, tuple[int, int]] = {}

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Time what the whole statement takes, once it is compiled."""
        started = perf_counter_ns()
        yield
        self.nanoseconds = perf_counter_ns() - started

    def measure_of(self, node: PlanNode) -> Measure | None:
        """What was measured of an operator; None if it is no operator of its own in the program."""
        number = self._numbers.get(id(node))
        return None if number is None else self.profile.measures[number]

    def number(self, node: PlanNode) -> int:
        """The number of an operator."""
        number = self._numbers.get(id(node))
        if number is None:
            number = self._numbers[id(node)] = len(self._nodes)
            self._nodes.append(node)
            self.profile.measures.append(Measure())
        return number

    def attach(self, compiler: QueryCompiler, node: PlanNode, pipeline: Pipeline) -> Pipeline:
        """The pipeline that an operator has just opened or continued, with measuring."""
        number, profile = self.number(node), compiler.module.bind("profile", self.profile)
        kept = self._kept_row(compiler, node, pipeline) if self.keeps_rows else ""
        seen = self._seen.get(pipeline.batch)
        # A source whose batches are the operator's rows is counted as it is read.
        counted = seen is None and not pipeline.clauses and not pipeline.per_batch
        if seen is None:
            counting = "" if counted else ", False"
            pipeline.source = f"{profile}.batches({number}, lambda: {pipeline.source}{counting})"
            seen = (len(pipeline.prologue), 0)
        else:
            before = seen[0]
            own = pipeline.prologue[before:]
            pipeline.prologue[before:] = [f"{profile}.start({number})"]
            if own:
                pipeline.prologue += [f"{profile}.enter({number})", *own, f"{profile}.leave()"]
        if not counted:
            compiler.materialise_rows(pipeline)
            lines = pipeline.per_batch[seen[1] :]
            count = f"{profile}.leave(len({pipeline.loop.source}))"
            pipeline.per_batch[seen[1] :] = [f"{profile}.enter({number})", *lines, count]
        if kept:
            rows = f"[{kept} {compiler.comprehension(pipeline)}]"
            pipeline.per_batch.append(f"{profile}.keep({number}, {rows})")
        self._seen[pipeline.batch] = (len(pipeline.prologue), len(pipeline.per_batch))
        return pipeline

    def _kept_row(self, compiler: QueryCompiler, node: PlanNode, pipeline: Pipeline) -> str:
        """Source of an operator's whole row; columns still to be computed are, once for all."""
        scope = compiler.scope(pipeline)
        for column_id in column_ids(node.columns):
            scope.column(column_id)
        return compiler.row_source(pipeline, column_ids(node.columns))

    def found(self, module: SourceModule, node: PlanNode, found: str, single: bool) -> str:
        """A statement that counts what index lookups gave."""
        profile = module.bind("profile", self.profile)
        return f"{profile}.found({self.number(node)}, {found}, {single})"
