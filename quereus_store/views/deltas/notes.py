"""States that outlive the process: noted beside the view, in the same commit as its rows.

A view by ``states`` (see :mod:`.states`) would have to pass over its sources once in every process that
changes them.  So each commit notes the states of the groups that it has changed, and the next process reads
those of the groups that it touches.

=================  =========================================================================================
note               holds
=================  =========================================================================================
header             what the states are of (the plan), and the change counters of the sources at that commit
of a group         the group, how many rows it has, the state of each aggregate
=================  =========================================================================================

The header decides whether the notes count.  A source that was changed without the states following (by
another strategy, an ALTER, a program that knows nothing of them) has another counter than the one noted: then
they are made anew, by one pass, and noted again.  So are notes that cannot be read: each has a checksum.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack

from quereus_store.execute.engine import Engine
from quereus_store.functions.aggregates import exact
from quereus_store.functions.aggregates.counting import COUNT_ROWS, COUNT_VALUES
from quereus_store.functions.aggregates.extremes import MAX, MIN
from quereus_store.functions.registry import Algebra
from quereus_store.modules.contract import NoteKeeper, VersionedTable
from quereus_store.plan.explain import plan_lines
from quereus_store.plan.expressions import AggregateCall
from quereus_store.plan.text import expression_text
from quereus_store.schema.objects import TableSchema, fold
from quereus_store.types import BLOB, BOOLEAN, DATE, DATETIME, INTEGER, REAL, TEXT, TIME
from quereus_store.views.body import TableKey, key_of
from quereus_store.views.deltas.grouping import Grouping

if TYPE_CHECKING:
    from quereus_store.execute.transactions import Transaction

Group = tuple[Any, ...]
States = tuple[Any, ...]

MOST_GROUPS = 50_000
"""With more groups nothing is noted: writing all of them would take longer than the pass."""

_HEADER = b"\0"
_LARGE, _LONGEST_NAME = 1, 100
_NOTED_TYPES = frozenset({INTEGER, REAL, TEXT, BLOB, BOOLEAN, DATE, TIME, DATETIME})


class Unreadable(Exception):
    """A note that is not what was written."""


class _Form(NamedTuple):
    """How the state of an aggregate is noted: as a total, or as the value that it gives."""

    algebra: Algebra
    is_total: bool

    def noted(self, state: Any) -> Any:
        if not self.is_total:
            return _packable(self.algebra.finish(state))
        count, integers, reals, scaled, *special = state
        shift = (scaled & -scaled).bit_length() - 1 if scaled else 0
        return [count, _packable(integers), reals, _packable(scaled >> shift), shift, *special]

    def state(self, noted: Any) -> Any:
        if not self.is_total:
            assert self.algebra.decode is not None
            return self.algebra.decode(noted)
        count, integers, reals, scaled, shift, *special = noted
        return exact.Total(count, integers, reals, scaled << shift, *special)


def _forms(calls: Sequence[AggregateCall], algebras: Sequence[Algebra]) -> list[_Form] | None:
    found = []
    for call, algebra in zip(calls, algebras, strict=True):
        is_total = algebra.add is exact.add
        by_value = call.function in (COUNT_ROWS, COUNT_VALUES) or (
            call.function in (MIN, MAX) and call.arguments[0].type in _NOTED_TYPES
        )
        if not is_total and not (by_value and algebra.decode is not None):
            return None
        found.append(_Form(algebra, is_total))
    return found


class StateNotes:
    """The notes of one view."""

    def __init__(
        self,
        engine: Engine,
        keeper: NoteKeeper,
        table: TableSchema,
        sources: Mapping[TableKey, VersionedTable],
        forms: Sequence[_Form],
        about: bytes,
    ) -> None:
        self._keeper = keeper
        self._table = table
        self._sources = sources.keys()
        self._handles = list(sources.values())
        self._forms = forms
        self._about = about
        self.module = table.module

    def are_current(self, transaction: Transaction) -> bool:
        """Whether the notes are those of the last committed state, and nothing has changed it since."""
        if transaction.catalog is not transaction.started_with:
            return False
        if not transaction.touched.isdisjoint(self._sources):
            return False
        snapshot = transaction.snapshot(self.module)
        (header,) = self._keeper.read_notes(snapshot, self._table, [_HEADER])
        try:
            return header is not None and _opened(header) == self._header(snapshot)
        except Unreadable:
            return False

    def _header(self, reader: Any) -> list[Any]:
        return [self._about, [handle.version(reader) for handle in self._handles]]

    def read(self, transaction: Transaction, groups: Sequence[Group]) -> dict[Group, States]:
        """The states of those of these groups that there are; raises Unreadable."""
        names = list(map(_name, groups))
        found: dict[Group, States] = {}
        notes = self._keeper.read_notes(transaction.snapshot(self.module), self._table, names)
        for group, note in zip(groups, notes, strict=True):
            if note is not None:
                noted, count, *states = _opened(note)
                if tuple(noted) != group or len(states) != len(self._forms):
                    raise Unreadable
                restored = [form.state(state) for form, state in zip(self._forms, states, strict=True)]
                found[group] = (count, *restored, None)
        return found

    def write(
        self, transaction: Transaction, groups: Mapping[Group, States | None], *, everything: bool
    ) -> bool:
        """Note the states of groups, None for one that is gone; ``everything``: there are no others.

        Whether there are notes now: too many groups are not noted.
        """
        too_many = everything and len(groups) > MOST_GROUPS
        if too_many:
            groups = {}
        notes: list[tuple[bytes, bytes | None]] = list(self._notes(groups))
        writer = transaction.writer(self.module)
        if not too_many:
            notes.append((_HEADER, _sealed(self._header(writer))))
        self._keeper.write_notes(writer, self._table, notes, anew=everything)
        return not too_many

    def _notes(self, groups: Mapping[Group, States | None]) -> Iterable[tuple[bytes, bytes | None]]:
        for group, states in groups.items():
            if states is None:
                yield _name(group), None
                continue
            noted = [form.noted(state) for form, state in zip(self._forms, states[1:-1], strict=True)]
            yield _name(group), _sealed([list(map(_packable, group)), states[0], *noted])


def notes_of(
    engine: Engine,
    table: TableSchema,
    sources: Sequence[TableSchema],
    grouping: Grouping,
    algebras: Sequence[Algebra],
) -> StateNotes | None:
    """The notes of a view; None where its module keeps none, or its states cannot be noted."""
    keeper = engine.module(table.module)
    if not isinstance(keeper, NoteKeeper):
        return None
    if any(fold(source.module) != fold(table.module) for source in sources):
        return None
    handles = {
        key_of(source): handle
        for source in sources
        if isinstance(handle := engine.table(source), VersionedTable)
    }
    keys = grouping.arguments.columns[: grouping.width]
    forms = _forms(grouping.aggregates, algebras)
    if forms is None or len(handles) < len(sources) or any(key.type not in _NOTED_TYPES for key in keys):
        return None
    return StateNotes(engine, keeper, table, handles, forms, _about(engine, sources, grouping))


def _about(engine: Engine, sources: Sequence[TableSchema], grouping: Grouping) -> bytes:
    """What the states are of: the plan that makes them, the aggregates, where the sources are kept."""
    lines = plan_lines(grouping.arguments, engine)
    lines += [f"{expression_text(call)} {call.using}" for call in grouping.aggregates]
    lines += [repr([column.type.name for column in grouping.arguments.columns])]
    lines += [repr((source.module, source.storage_id)) for source in sources]
    return hashlib.blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=16).digest()


# --- bytes ------------------------------------------------------------------------------------------------


def _name(group: Group) -> bytes:
    packed: bytes = msgpack.packb(list(map(_packable, group)), unicode_errors="surrogatepass")
    if len(packed) <= _LONGEST_NAME:
        return b"\1" + packed
    return b"\2" + hashlib.blake2b(packed, digest_size=32).digest()


def _packable(value: Any) -> Any:
    if type(value) is int and not -(2**63) <= value < 2**63:
        return msgpack.ExtType(_LARGE, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))
    return value


def _unpacked(code: int, data: bytes) -> Any:
    if code != _LARGE:
        raise Unreadable
    return int.from_bytes(data, "big", signed=True)


def _sealed(content: Any) -> bytes:
    packed: bytes = msgpack.packb(content, unicode_errors="surrogatepass")
    return zlib.crc32(packed).to_bytes(4, "big") + packed


def _opened(note: bytes) -> Any:
    if zlib.crc32(note[4:]).to_bytes(4, "big") != note[:4]:
        raise Unreadable
    try:
        return msgpack.unpackb(
            note[4:], ext_hook=_unpacked, unicode_errors="surrogatepass", strict_map_key=False
        )
    except (ValueError, TypeError) as error:
        raise Unreadable from error
