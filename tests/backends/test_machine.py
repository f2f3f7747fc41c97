"""Any sequence of writes, savepoints, snapshots and reopenings leaves what a dictionary would hold."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quereus_store.backends import open_backend
from quereus_store.backends.contract import ReadTransaction

Content = dict[bytes, bytes]

# Few keys, so that they meet; some beyond what LMDB takes by itself, with prefixes in common.
KEYS = st.sampled_from(
    [
        b"a",
        b"a\0",
        b"a\xff",
        b"b",
        b"b" * 511,
        b"b" * 512,
        b"b" * 600 + b"x",
        b"b" * 600 + b"y",
        b"c",
        b"\xff",
    ]
)
VALUES = st.sampled_from([b"", b"1", b"2", b"v" * 5000])
ITEMS = st.lists(st.tuples(KEYS, VALUES), max_size=6)


def within(content: Content, lower: bytes, upper: bytes | None) -> list[tuple[bytes, bytes]]:
    return sorted(item for item in content.items() if lower <= item[0] and (upper is None or item[0] < upper))


def items_of(transaction: ReadTransaction, lower: bytes, upper: bytes | None, reverse: bool) -> list[Any]:
    return [item for batch in transaction.scan(lower, upper, reverse=reverse, batch_size=3) for item in batch]


class BackendMachine(RuleBasedStateMachine):
    """One writer, up to three snapshots that stay, and the model of what each of them sees."""

    backend_name: str
    options: dict[str, Any]

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.committed: Content = {}
        self.content: Content = {}
        self.marks: list[tuple[Any, Content]] = []
        self.snapshots: list[tuple[Any, Content]] = []
        self.writer: Any = None
        self._open()

    def _open(self) -> None:
        self.backend = open_backend(self.backend_name, Path(self.folder.name) / "data", **self.options)

    def teardown(self) -> None:
        if hasattr(self, "backend"):
            self.backend.close()
            self.folder.cleanup()

    def _write(self) -> Any:
        if self.writer is None:
            self.writer = self.backend.write(0.0)
        return self.writer

    # --- changes --------------------------------------------------------------------------------------------

    @rule(items=ITEMS)
    def put_many(self, items: list[tuple[bytes, bytes]]) -> None:
        self._write().put_many(items)
        self.content = {**self.content, **dict(items)}

    @rule(items=ITEMS)
    def insert_many(self, items: list[tuple[bytes, bytes]]) -> None:
        content, stopped = dict(self.content), None
        for number, (key, value) in enumerate(items):
            if key in content:
                stopped = number
                break
            content[key] = value
        assert self._write().insert_many(items) == stopped
        self.content = content

    @rule(key=KEYS, value=VALUES)
    def insert(self, key: bytes, value: bytes) -> None:
        assert self._write().insert(key, value) == (key not in self.content)
        self.content = {key: value, **self.content}

    @rule(keys=st.lists(KEYS, max_size=4))
    def delete_many(self, keys: list[bytes]) -> None:
        self._write().delete_many(keys)
        self.content = {key: value for key, value in self.content.items() if key not in keys}

    @rule(lower=KEYS, upper=KEYS | st.none())
    def delete_range(self, lower: bytes, upper: bytes | None) -> None:
        gone = dict(within(self.content, lower, upper))
        assert self._write().delete_range(lower, upper) == len(gone)
        self.content = {key: value for key, value in self.content.items() if key not in gone}

    # --- transactions ---------------------------------------------------------------------------------------

    @rule()
    def savepoint(self) -> None:
        self.marks.append((self._write().savepoint(), self.content))

    @precondition(lambda self: self.marks)
    @rule(data=st.data(), release=st.booleans())
    def back_to(self, data: st.DataObject, release: bool) -> None:
        number = data.draw(st.integers(0, len(self.marks) - 1))
        mark, content = self.marks[number]
        if release:
            self.writer.release(mark)
            del self.marks[number:]
        else:
            self.writer.rollback_to(mark)
            del self.marks[number + 1 :]
            self.content = content

    @precondition(lambda self: self.writer is not None)
    @rule(commit=st.booleans(), durable=st.booleans())
    def end(self, commit: bool, durable: bool) -> None:
        if commit:
            self.writer.commit(durable)
            self.committed = self.content
        else:
            self.writer.abort()
            self.content = self.committed
        self.writer, self.marks = None, []

    @precondition(lambda self: len(self.snapshots) < 3)
    @rule()
    def take_snapshot(self) -> None:
        self.snapshots.append((self.backend.read(), self.committed))

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def give_snapshot_back(self, data: st.DataObject) -> None:
        reader, _ = self.snapshots.pop(data.draw(st.integers(0, len(self.snapshots) - 1)))
        reader.close()

    @precondition(lambda self: self.backend_name != "memory")
    @rule()
    def reopen(self) -> None:
        """What was not committed is gone, whatever was still open."""
        for reader, _ in self.snapshots:
            reader.close()
        self.backend.close()
        self.writer, self.marks, self.snapshots = None, [], []
        self.content = self.committed
        self._open()

    # --- what must hold -------------------------------------------------------------------------------------

    @invariant()
    def everybody_sees_what_they_should(self) -> None:
        if not hasattr(self, "backend"):
            return
        with self.backend.read() as reader:
            views = [*self.snapshots, (reader, self.committed)]
            views += [(self.writer, self.content)] if self.writer is not None else []
            for transaction, content in views:
                assert items_of(transaction, b"", None, False) == within(content, b"", None)

    @rule(lower=KEYS, upper=KEYS | st.none(), keys=st.lists(KEYS, max_size=5))
    def look(self, lower: bytes, upper: bytes | None, keys: list[bytes]) -> None:
        transaction = self._write()
        expected = within(self.content, lower, upper)
        assert items_of(transaction, lower, upper, False) == expected
        assert items_of(transaction, lower, upper, True) == expected[::-1]
        assert transaction.count(lower, upper) == len(expected)
        assert transaction.get_many(keys) == [self.content.get(key) for key in keys]


def _case(name: str, **options: Any) -> Any:
    machine = type(f"Machine_{name}", (BackendMachine,), {"backend_name": name, "options": options})
    machine.TestCase.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
    return machine.TestCase


TestMemory = _case("memory")
TestLmdb = _case("lmdb", synchronous="off", map_size=2**17)
TestLeveldb = _case("leveldb", synchronous="off")
