"""A state machine: random operations on a module and on a plain dictionary must agree.

The table has a composite key with a descending part, a nullable column, a UNIQUE over two columns
under NOCASE, and a partial index, so that most of what can go wrong is within reach of few values.
The model keeps rows by key and knows the rules of the contract; savepoints are copies of it.

Needs Hypothesis::

    TestMyModule = module_machine(make_module).TestCase
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quereus_store.modules.conformance.harness import Harness, MakeModule
from quereus_store.modules.contract import Row, UniqueViolation

_TABLE = (
    "create table t (a integer, b integer not null, n text collate nocase, v integer,"
    " primary key (a, b desc), unique (n, v))"
)
_INDEXES = ("create index some on t (v desc) where b > 1", "create index shouted on t (n collate binary)")

_SMALL = st.integers(0, 3)
_KEYS = st.tuples(st.none() | _SMALL, st.integers(0, 12))
_REST = st.tuples(st.none() | st.sampled_from(["x", "X", "y", "zz"]), st.none() | _SMALL)
_ROWS = st.builds(lambda key, rest: (*key, *rest), _KEYS, _REST)
_BATCHES = st.lists(_ROWS, min_size=1, max_size=14)

Key = tuple[Any, ...]


def _key(row: Row) -> Key:
    return row[:2]


def _unique(row: Row) -> Key | None:
    name, value = row[2:]
    return None if name is None or value is None else (name.lower(), value)


def _order(row: Row) -> Key:
    return (row[0] is not None, row[0] or 0, -row[1])


class Model:
    """What the table should hold."""

    def __init__(self, rows: dict[Key, Row] | None = None) -> None:
        self.rows: dict[Key, Row] = dict(rows or {})

    def collides(self, row: Row, replacing: Row | None = None) -> bool:
        """Whether a row meets another one under the key or the UNIQUE."""
        others = [other for other in self.rows.values() if other != replacing]
        if any(_key(other) == _key(row) for other in others):
            return True
        unique = _unique(row)
        return unique is not None and any(_unique(other) == unique for other in others)

    def inserted(self, rows: list[Row]) -> Model | None:
        """The model with these rows; None when one is in the way."""
        after = Model(self.rows)
        for row in rows:
            if after.collides(row):
                return None
            after.rows[_key(row)] = row
        return after

    def updated(self, old: list[Row], new: list[Row]) -> Model | None:
        """The model with rows replaced in order; None when one is in the way."""
        after = Model(self.rows)
        for before, row in zip(old, new, strict=True):
            if after.collides(row, before):
                return None
            del after.rows[_key(before)]
            after.rows[_key(row)] = row
        return after

    def ordered(self) -> list[Row]:
        """All rows in key order."""
        return sorted(self.rows.values(), key=_order)


class ModuleMachine(RuleBasedStateMachine):
    """Operations in a writer, with readers beside it; ``make_module`` is set by :func:`module_machine`."""

    make_module: MakeModule

    @initialize()
    def start(self) -> None:
        """An empty table."""
        self.kit = Harness(type(self).make_module)
        self.schema = self.kit.create(_TABLE, *_INDEXES)
        self.table = self.kit.module.table(self.schema)
        self.committed = Model()
        self.model = Model()
        self.writer: Any = None
        self.savepoints: list[tuple[int, Model]] = []
        self.snapshots: list[tuple[Any, Model]] = []

    def teardown(self) -> None:
        """Give everything back."""
        for snapshot, _ in getattr(self, "snapshots", ()):
            snapshot.rollback()
        if getattr(self, "writer", None) is not None:
            self.writer.rollback()
        if hasattr(self, "kit"):
            self.kit.module.close()

    def _begin(self) -> None:
        if self.writer is None:
            self.writer = self.kit.module.begin_write(0.0)

    # --- changes ---------------------------------------------------------------------------------------

    @rule(rows=_BATCHES)
    def insert(self, rows: list[Row]) -> None:
        """A batch goes in whole or not at all."""
        self._begin()
        after = self.model.inserted(rows)
        if self._done(lambda: self.table.insert(self.writer, rows)) != (after is not None):
            raise AssertionError(f"insert of {rows} into {self.model.ordered()}")
        self.model = after or self.model

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Some rows go."""
        self._begin()
        gone = self._some_rows(data)
        self.table.delete(self.writer, gone)
        self.model = Model({key: row for key, row in self.model.rows.items() if row not in gone})

    @rule(data=st.data(), keep_keys=st.booleans())
    def update(self, data: st.DataObject, keep_keys: bool) -> None:
        """Some rows change, their keys with them or not."""
        self._begin()
        old = self._some_rows(data)
        new = [(*row[:2], *data.draw(_REST)) if keep_keys else data.draw(_ROWS) for row in old]
        after = self.model.updated(old, new)
        if self._done(lambda: self.table.update(self.writer, old, new)) != (after is not None):
            raise AssertionError(f"update of {old} to {new} in {self.model.ordered()}")
        self.model = after or self.model

    def _some_rows(self, data: st.DataObject) -> list[Row]:
        rows = self.model.ordered()
        return data.draw(st.lists(st.sampled_from(rows), unique=True, max_size=14)) if rows else []

    @staticmethod
    def _done(change: Any) -> bool:
        try:
            change()
        except UniqueViolation:
            return False
        return True

    # --- transactions ----------------------------------------------------------------------------------

    @rule()
    def savepoint(self) -> None:
        """Mark the present state."""
        self._begin()
        self.savepoints.append((self.writer.savepoint(), self.model))

    @precondition(lambda self: self.savepoints)
    @rule(data=st.data(), release=st.booleans())
    def roll_back_to(self, data: st.DataObject, release: bool) -> None:
        """Back to a mark, which stays, or forget it."""
        number = data.draw(st.integers(0, len(self.savepoints) - 1))
        token, model = self.savepoints[number]
        if release:
            self.writer.release(token)
            del self.savepoints[number:]
        else:
            self.writer.rollback_to(token)
            del self.savepoints[number + 1 :]
            self.model = model

    @rule(commit=st.booleans())
    def end(self, commit: bool) -> None:
        """Commit or roll back."""
        if self.writer is None:
            return
        if commit:
            self.writer.commit()
            self.committed = self.model
        else:
            self.writer.rollback()
            self.model = self.committed
        self.writer, self.savepoints = None, []

    @rule()
    def take_snapshot(self) -> None:
        """A reader that stays."""
        if len(self.snapshots) < 3:
            self.snapshots.append((self.kit.module.begin_read(), self.committed))

    # --- what must hold --------------------------------------------------------------------------------

    @invariant()
    def everybody_sees_what_they_should(self) -> None:
        """The writer its own state, a new reader the committed one, an old reader the one it began with."""
        if not hasattr(self, "kit"):
            return
        with self.kit.reading() as reader:
            views = [*self.snapshots, (reader, self.committed)]
            if self.writer is not None:
                views.append((self.writer, self.model))
            for transaction, model in views:
                self._check(transaction, model)

    def _check(self, transaction: Any, model: Model) -> None:
        rows = model.ordered()
        kit, schema = self.kit, self.schema
        assert kit.rows(schema, transaction) == rows
        assert kit.rows(schema, transaction, reverse=True) == rows[::-1]
        assert self.table.count(transaction) == len(rows)
        held = sorted((row for row in rows if row[1] > 1), key=lambda row: (row[3] is None, -(row[3] or 0)))
        assert kit.seek(schema, "some", transaction=transaction) == held
        shouted = sorted(rows, key=lambda row: (row[2] is not None, row[2] or ""))
        assert kit.seek(schema, "shouted", transaction=transaction) == shouted

    @rule(key=_KEYS, low=st.integers(-1, 13), name=st.sampled_from(["x", "y"]), value=_SMALL)
    def look_up(self, key: Key, low: int, name: str, value: int) -> None:
        """Points, ranges and the UNIQUE's index agree with the model."""
        transaction = self.writer or self.kit.module.begin_read()
        rows = (self.model if self.writer is not None else self.committed).ordered()
        kit, schema = self.kit, self.schema
        point = next((row for row in rows if _key(row) == key), None)
        assert self.table.point(transaction, key) == point
        found = kit.seek(schema, None, key[0], low=(">", low), transaction=transaction)
        assert found == [row for row in rows if row[0] == key[0] and row[1] > low]
        found = kit.seek(schema, "_uc_n_v", name, value, transaction=transaction)
        assert found == [row for row in rows if _unique(row) == (name, value)]
        found = kit.seek(schema, "some", high=("<=", value), transaction=transaction)
        kept = (row for row in rows if row[1] > 1 and row[3] is not None and row[3] <= value)
        assert found == sorted(kept, key=lambda row: -row[3])
        if self.writer is None:
            transaction.rollback()


def module_machine(make_module: MakeModule, examples: int = 40, steps: int = 30) -> type[ModuleMachine]:
    """The machine for a module; its ``TestCase`` is what a test file collects."""
    machine = type("Machine", (ModuleMachine,), {"make_module": staticmethod(make_module)})
    machine.TestCase.settings = settings(  # type: ignore[attr-defined]
        max_examples=examples, stateful_step_count=steps, deadline=None
    )
    return machine
