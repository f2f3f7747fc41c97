"""The loops that generated code calls rather than writes: sorting, counting out, sets, caches.

Each works on whole batches or whole results, so that its own Python overhead is
paid per batch and the per-row work stays in C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from math import ceil, isfinite
from operator import itemgetter
from typing import Any

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.execute.watch import Watch
from quereus_store.modules.contract import Row
from quereus_store.types.comparison import ComparisonMode
from quereus_store.types.values import number_from_text

Batches = Iterable[list[Row]]
BATCH_SIZE = 1024
_CACHE_LIMIT = 10_000

UNMATCHABLE = object()
"""The hash key of rows that no row may match."""


def in_batches(rows: list[Row]) -> Batches:
    """A finished result as batches."""
    if len(rows) <= 2 * BATCH_SIZE:
        return (rows,) if rows else ()
    return (rows[start : start + BATCH_SIZE] for start in range(0, len(rows), BATCH_SIZE))


def batches_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Single rows as batches."""
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH_SIZE)):
        yield batch


def gather(batches: Batches) -> list[Row]:
    """All rows of all batches in one new list."""
    if type(batches) is tuple and len(batches) == 1:
        return list(batches[0])
    return list(chain.from_iterable(batches))


def has_rows(batches: Batches) -> bool:
    """Whether any batch has a row."""
    return any(batches)


def scalar_result(batches: Batches, position: SourcePosition | None = None) -> Any:
    """The value of a scalar subquery; raises ERROR, at its place in the text, when it has several rows."""
    found = single_row(batches, position)
    return found[0][0][0] if found else None


def single_row(batches: Batches, position: SourcePosition | None = None) -> list[list[Row]]:
    """The only row, as batches; raises ERROR where there are several."""
    found: list[Row] = []
    for batch in batches:
        found += batch[:2]
        if len(found) > 1:
            raise sql_error(StatusCode.ERROR, "Scalar subquery returned more than one row", position)
    return [found] if found else []


def once(function: Callable[[], Any]) -> Callable[[], Any]:
    """The function's result, computed when first asked for."""
    results: list[Any] = []

    def result() -> Any:
        if not results:
            results.append(function())
        return results[0]

    return result


def cached(function: Callable[..., Any], fits: Callable[[Any], bool] | None = None) -> Callable[..., Any]:
    """The function with its results kept by arguments; arguments that cannot be hashed are not.

    ``fits`` is asked about every new result; where it says no, the earlier ones are forgotten.
    """
    results: dict[Any, Any] = {}

    def result(*arguments: Any) -> Any:
        key = (arguments, tuple(map(type, arguments)))
        try:
            return results[key]
        except KeyError:
            value = function(*arguments)
            if len(results) >= _CACHE_LIMIT or (fits is not None and not fits(value)):
                results.clear()
            results[key] = value
            return value
        except TypeError:
            return function(*arguments)

    return result


class _WatchedRows(list[Row]):
    """Many rows that are read again and again, with a look at the watch each time."""

    __slots__ = ("watch",)

    watch: Watch

    def __iter__(self) -> Iterator[Row]:
        if self.watch.active:
            self.watch.step(len(self))
        return super().__iter__()


def inner_rows(runtime: Any, batches: Batches) -> list[Row]:
    """The gathered rows of a side that is read once for each row of the other."""
    rows = gather(batches)
    if len(rows) < BATCH_SIZE:
        return rows
    watched_rows = _WatchedRows(rows)
    watched_rows.watch = runtime.watch
    return watched_rows


# -- order -----------------------------------------------------------------------


SortPass = tuple[int, Callable[[Any], Any] | None, bool, str, bool]


def sorting(*passes: SortPass) -> Callable[[list[Row]], list[Row]]:
    """A function that sorts a list of rows in some passes, the last term first (:func:`sort_pass`)."""

    def sort(rows: list[Row]) -> list[Row]:
        for each in passes:
            rows = sort_pass(rows, *each)
        return rows

    return sort


def sort_pass(
    rows: list[Row],
    index: int,
    key: Callable[[Any], Any] | None,
    descending: bool,
    nulls: str,
    only_nan: bool,
) -> list[Row]:
    """One stable pass of a sort by one column.

    ``nulls`` is ``none`` (there are none), ``first`` or ``last``; ``key`` turns a
    non-NULL value into what sorts it, None where the value does itself.
    ``only_nan``: it is only NaN that needs the key.
    """
    get = itemgetter(index)
    missing: list[Row] = []
    if nulls != "none":
        missing = [row for row in rows if row[index] is None]
        if missing:
            rows = [row for row in rows if row[index] is not None]
    if key is None or (only_nan and not _may_hold_nan(map(get, rows))):
        rows.sort(key=get, reverse=descending)
    else:
        make = key
        rows.sort(key=lambda row: make(row[index]), reverse=descending)
    if not missing:
        return rows
    return missing + rows if nulls == "first" else rows + missing


def sort_by_keys(batches: Batches, keys: list[Any], descending: bool, nulls: str) -> list[Row]:
    """All rows in the order of ``keys``, to which reading the batches adds one for each row.

    ``nulls`` is as for :func:`sort_pass`; None is the key of NULL.
    """
    rows = gather(batches)
    missing: list[Row] = []
    if nulls != "none":
        missing = [row for row, key in zip(rows, keys, strict=True) if key is None]
        if missing:
            rows = [row for row, key in zip(rows, keys, strict=True) if key is not None]
            keys = [key for key in keys if key is not None]
    # Asked for the key of each row in turn, this gives the next one.
    rows.sort(key=partial(next, iter(keys)), reverse=descending)
    if not missing:
        return rows
    return missing + rows if nulls == "first" else rows + missing


def _may_hold_nan(numbers: Iterable[float]) -> bool:
    """Whether a column may hold NaN: its sum is not itself then (nor where infinities cancel out)."""
    try:
        total = sum(numbers)
    except OverflowError:
        return True
    return total != total


_ALL_ROWS = 2**62
"""More rows than there are; a larger LIMIT or OFFSET says no more."""


def row_limit(value: Any, default: float) -> float:
    """A LIMIT or OFFSET value as a number of rows: NULL is ``default``, fractions round up, nonsense is 0."""
    if value is None:
        return default
    if isinstance(value, str):
        value = number_from_text(value)
    if isinstance(value, int):
        return min(max(value, 0), _ALL_ROWS)
    return min(ceil(value), _ALL_ROWS) if isinstance(value, float) and isfinite(value) and value > 0 else 0


def limit_batches(batches: Batches, count: Any, offset: Any = None) -> Iterator[list[Row]]:
    """The first ``count`` rows after ``offset``; asks for no batch that it does not need."""
    wanted = row_limit(count, float("inf"))
    skip = row_limit(offset, 0)
    if wanted <= 0:
        return
    for batch in batches:
        if skip >= len(batch):
            skip -= len(batch)
            continue
        if skip:
            batch = batch[int(skip) :]
            skip = 0
        if len(batch) >= wanted:
            yield batch[: int(wanted)]
            return
        wanted -= len(batch)
        yield batch


def contenders(position: int, descending: bool, nullable: bool) -> Callable[[list[Row], Row], list[Row]]:
    """A function of a batch and a row: the rows that, by one column that orders itself, do not come after it.

    NULLs come first.  Asked this way round, NaN, which no operator orders, stays in.
    """

    def kept(batch: list[Row], last: Row) -> list[Row]:
        bound = last[position]
        if bound is None:
            return [row for row in batch if row[position] is None]
        if nullable and descending:
            return [row for row in batch if (value := row[position]) is None or not value < bound]
        if nullable:
            return [row for row in batch if (value := row[position]) is None or not value > bound]
        if descending:
            return [row for row in batch if not row[position] < bound]
        return [row for row in batch if not row[position] > bound]

    return kept


def top_rows(
    batches: Batches,
    sort: Callable[[list[Row]], list[Row]],
    contending: Callable[[list[Row], Row], list[Row]] | None,
    count: Any,
    offset: Any = None,
) -> list[Row]:
    """The rows that Sort and Limit would give, keeping few more than these.

    ``contending(batch, last)`` leaves out rows that by their first sort term come
    after ``last``, the last row that still counts; None where that takes more than an operator.
    """
    skip = row_limit(offset, 0)
    wanted = row_limit(count, float("inf")) + skip
    if wanted <= skip:
        return []
    if wanted == float("inf"):
        return sort(gather(batches))[int(skip) :]
    last = int(wanted)
    room = max(4 * last, BATCH_SIZE)
    kept: list[Row] = []
    worst: Row | None = None
    for batch in batches:
        if worst is not None and contending is not None:
            batch = contending(batch, worst)
        kept += batch
        if len(kept) > room:
            kept = sort(kept)[:last]
            worst = kept[-1]
    return sort(kept)[int(skip) : last]


# -- joins -----------------------------------------------------------------------


def rows_by(batches: Batches, position: int) -> dict[Any, Row]:
    """Rows by a column that never holds the same value twice."""
    table: dict[Any, Row] = {}
    get = itemgetter(position)
    for batch in batches:
        table.update(zip(map(get, batch), batch, strict=True))
    return table


# -- sets ------------------------------------------------------------------------


def distinct_batches(batches: Batches, key: Callable[[Row], Any] | None) -> Iterator[list[Row]]:
    """Rows not met before; ``key`` gives a row's identity, None where the row is its own."""
    seen: set[Any] = set()
    add = seen.add
    for batch in batches:
        if key is None:
            # Repeats within the batch go first, in C; what is left is little.
            fresh = [row for row in dict.fromkeys(batch) if row not in seen]
            seen.update(fresh)
        else:
            fresh = [row for row in batch if (k := key(row)) not in seen and not add(k)]
        if fresh:
            yield fresh


def keyed(rows: Iterable[Row], key: Callable[[Row], Any] | None) -> Iterable[tuple[Any, Row]]:
    """Rows with their identities."""
    return ((row, row) for row in rows) if key is None else ((key(row), row) for row in rows)


def set_operation(
    kind: str, keep_all: bool, left: list[Row], right: list[Row], key: Callable[[Row], Any] | None
) -> list[Row]:
    """INTERSECT, EXCEPT and DIFF of two finished inputs; rows come from the left where both have them."""
    if keep_all:
        return _multiset_operation(kind, left, right, key)
    others = {k for k, _ in keyed(right, key)}
    own: dict[Any, Row] = {}
    for k, row in keyed(left, key):
        own.setdefault(k, row)
    if kind == "intersect":
        return [row for k, row in own.items() if k in others]
    result = [row for k, row in own.items() if k not in others]
    if kind == "diff":
        extra: dict[Any, Row] = {}
        for k, row in keyed(right, key):
            if k not in own:
                extra.setdefault(k, row)
        result += extra.values()
    return result


def _multiset_operation(
    kind: str, left: list[Row], right: list[Row], key: Callable[[Row], Any] | None
) -> list[Row]:
    counts: dict[Any, int] = {}
    for k, _ in keyed(right, key):
        counts[k] = counts.get(k, 0) + 1
    result = []
    for k, row in keyed(left, key):
        if counts.get(k, 0) > 0:
            counts[k] -= 1
            if kind == "intersect":
                result.append(row)
        elif kind != "intersect":
            result.append(row)
    return result


def flagged_union(
    left: list[Row], right: list[Row], key: Callable[[Row], Any] | None, kind: str, keep_all: bool
) -> list[tuple[Row, bool, bool]]:
    """The rows of a set operation, each with whether it is in the left and in the right input."""
    in_left = {k for k, _ in keyed(left, key)}
    in_right = {k for k, _ in keyed(right, key)}
    if kind == "union":
        rows = left + right
        if not keep_all:
            rows = gather(distinct_batches((rows,), key))
    else:
        rows = set_operation(kind, keep_all, left, right, key)
    return [(row, k in in_left, k in in_right) for k, row in keyed(rows, key)]


def recurse(
    seed: Batches,
    step: Callable[[list[Row]], list[Row]],
    key: Callable[[Row], Any] | None,
    distinct: bool,
    rounds: int,
    name: str,
) -> Iterator[list[Row]]:
    """Semi-naive evaluation of a recursive common table: the rows of each round are the input of the next.

    The rows of many small rounds make one batch; the first come at once, then never more are read ahead than
    have been handed out already.  So a LIMIT above an endless source is reached in time, and what fails fails
    after the rows before it.
    """
    fresh = _not_met_before(key) if distinct else None
    most = rounds if rounds > 0 else _ALL_ROWS
    handed = ahead = passed = 0
    waiting: list[Row] = []
    try:
        working = gather(seed)
        if fresh is not None:
            working = fresh(working)
        while working:
            if passed > most:
                raise sql_error(
                    StatusCode.ERROR,
                    f"Recursive CTE '{name}' exceeded maximum iteration limit ({rounds})",
                )
            waiting += working
            if len(waiting) > ahead:
                yield waiting
                handed += len(waiting)
                ahead = min(handed, BATCH_SIZE)
                waiting = []
            working = step(working)
            if fresh is not None:
                working = fresh(working)
            passed += 1
    except Exception:
        if waiting:
            yield waiting
        raise
    if waiting:
        yield waiting


def _not_met_before(key: Callable[[Row], Any] | None) -> Callable[[list[Row]], list[Row]]:
    """A function that drops the rows that it has been given before."""
    seen: set[Any] = set()
    add = seen.add
    return lambda rows: [row for k, row in keyed(rows, key) if k not in seen and not add(k)]


@dataclass(frozen=True, slots=True)
class Probe:
    """How one operand meets one column of an IN subquery.

    ``key`` is the identity of both (None: values are their own); where they
    have no common identity, ``equal`` compares two non-NULL values.
    """

    key: Callable[[Any], Any] | None
    equal: Callable[[Any, Any], bool] | None


def hashable_mode(mode: ComparisonMode) -> bool:
    """Whether equality under a mode is equality of keys."""
    return mode in (ComparisonMode.NATIVE, ComparisonMode.TEXT, ComparisonMode.TIMESPAN, ComparisonMode.JSON)


class Members:
    """The rows of an IN subquery, asked whether a value is among them (three-valued).

    ``has`` and ``lacks`` say whether IN is true and whether it is false; with a
    NULL involved neither need hold.
    """

    __slots__ = ("_hashed", "_keys", "_nulls", "_probes", "_rows")

    def __init__(self, batches: Batches, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._hashed = all(probe.equal is None for probe in probes)
        rows = gather(batches)
        if len(probes) == 1:
            self._nulls = [row for row in rows if row[0] is None]
            values = [row[0] for row in rows if row[0] is not None]
            self._rows: list[Any] = values
            key = probes[0].key
            self._keys = (
                frozenset(values if key is None else map(key, values)) if self._hashed else frozenset()
            )
        else:
            self._nulls = [row for row in rows if None in row]
            self._rows = [row for row in rows if None not in row]
            self._keys = frozenset(map(self._row_key, self._rows)) if self._hashed else frozenset()

    def _row_key(self, row: Row) -> tuple[Any, ...]:
        return tuple(
            value if probe.key is None else probe.key(value)
            for probe, value in zip(self._probes, row, strict=True)
        )

    def has(self, value: Any) -> bool:
        """Whether ``value in (query)`` is true."""
        if value is None:
            return False
        probe = self._probes[0]
        if self._hashed:
            return (value if probe.key is None else probe.key(value)) in self._keys
        equal = probe.equal
        return equal is not None and any(equal(value, other) for other in self._rows)

    def lacks(self, value: Any) -> bool:
        """Whether ``value in (query)`` is false: no match, and no NULL that might be one."""
        if not self._rows and not self._nulls:
            return True
        return value is not None and not self._nulls and not self.has(value)

    def has_row(self, row: Row) -> bool:
        """Whether a row value is in the query."""
        if None in row:
            return False
        if self._hashed:
            return self._row_key(row) in self._keys
        return any(self._matches(row, other) is True for other in self._rows)

    def lacks_row(self, row: Row) -> bool:
        """Whether a row value is certainly not in the query."""
        return all(self._matches(row, other) is False for other in chain(self._rows, self._nulls))

    def _matches(self, row: Row, other: Row) -> bool | None:
        unknown = False
        for probe, mine, theirs in zip(self._probes, row, other, strict=True):
            if mine is None or theirs is None:
                unknown = True
            elif not _equal(probe, mine, theirs):
                return False
        return None if unknown else True


def _equal(probe: Probe, mine: Any, theirs: Any) -> bool:
    if probe.equal is not None:
        return bool(probe.equal(mine, theirs))
    if probe.key is None:
        return bool(mine == theirs)
    return bool(probe.key(mine) == probe.key(theirs))
