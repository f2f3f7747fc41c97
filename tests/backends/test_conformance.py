"""Every built-in backend keeps the contract, and the kit notices one that does not."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from quereus_store.backends import BACKENDS, Backend, open_backend
from quereus_store.backends.conformance import CHECKS, run_conformance
from quereus_store.backends.contract import Item, ReadTransaction, Savepoint, WriteTransaction
from quereus_store.backends.locking import WriterLock
from quereus_store.backends.memory import (
    MemoryBackend,
    MemoryReadTransaction,
    MemoryWriteTransaction,
    State,
)
from quereus_store.errors import Error, StatusCode


@pytest.mark.parametrize("name", list(BACKENDS))
def test_built_in_backends_conform(name: str, tmp_path: Path) -> None:
    persistent = name != "memory"
    report = run_conformance(
        lambda folder: open_backend(name, folder / "data"), persistent=persistent, folder=tmp_path
    )
    report.require()
    assert len(report.outcomes) == len(CHECKS) - (not persistent)


def test_lmdb_conforms_with_a_map_that_must_grow(tmp_path: Path) -> None:
    run_conformance(
        lambda folder: open_backend("lmdb", folder / "data", map_size=2**17), folder=tmp_path
    ).require()


@pytest.mark.parametrize("name", list(BACKENDS))
def test_built_in_backends_have_the_interface(name: str, tmp_path: Path) -> None:
    backend = open_backend(name, tmp_path / "data")
    assert isinstance(backend, Backend)
    assert backend.name == name
    with backend.read() as reader:
        assert isinstance(reader, ReadTransaction)
    with backend.write() as writer:
        assert isinstance(writer, WriteTransaction)
    backend.close()


# --- backends that break one promise each -----------------------------------------------------------------


class _Broken(MemoryBackend):
    """A memory backend with other transactions."""

    reader: type[MemoryReadTransaction] = MemoryReadTransaction
    writer: type[MemoryWriteTransaction] = MemoryWriteTransaction

    def read(self) -> MemoryReadTransaction:
        return self.reader(self._last())

    def write(self, timeout: float = 5.0) -> MemoryWriteTransaction:
        self._last()
        self.writer_lock.acquire(timeout)
        return self.writer(self, self._last())


class _ShortKeysFirst(_Broken):
    class reader(MemoryReadTransaction):  # noqa: N801
        def scan(self, lower: bytes, upper: bytes | None, **options: Any) -> Iterator[list[Item]]:
            items = chain(*super().scan(lower, upper, **options))
            yield sorted(items, key=lambda item: (len(item[0]), item[0]))


class _WithoutBounds(_Broken):
    class reader(MemoryReadTransaction):  # noqa: N801
        def scan(self, lower: bytes, upper: bytes | None, **options: Any) -> Iterator[list[Item]]:
            return super().scan(b"", None, **options)


class _ForwardOnly(_Broken):
    class reader(MemoryReadTransaction):  # noqa: N801
        def first_values(
            self, lower: bytes, upper: bytes | None, limit: int, *, reverse: bool = False
        ) -> list[bytes]:
            return super().first_values(lower, upper, limit)


class _BlindToItsWrites(_Broken):
    class writer(MemoryWriteTransaction):  # noqa: N801
        def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
            return list(map(self._backend._last().get, keys))


class _ForgetsSavepoints(_Broken):
    class writer(MemoryWriteTransaction):  # noqa: N801
        def rollback_to(self, savepoint: Savepoint) -> None:
            pass


class _Shifting(_Broken):
    """Its snapshots follow what others commit."""

    def read(self) -> MemoryReadTransaction:
        backend = self

        class Reader(MemoryReadTransaction):
            def _live(self) -> State:
                super()._live()
                return backend._last()

        return Reader(self._last())


class _KeepsWhatWasAborted(_Broken):
    class writer(MemoryWriteTransaction):  # noqa: N801
        def abort(self) -> None:
            if self._state is not None:
                self.commit()


class _HoldsCursors(_Broken):
    """A scan that is not read to its end keeps one of its two hundred cursors."""

    def __init__(self) -> None:
        super().__init__()
        self.cursors = 0

    def read(self) -> MemoryReadTransaction:
        backend = self

        class Reader(MemoryReadTransaction):
            def scan(self, lower: bytes, upper: bytes | None, **options: Any) -> Iterator[list[Item]]:
                if backend.cursors == 200:
                    raise RuntimeError("no cursor left")
                backend.cursors += 1
                yield from super().scan(lower, upper, **options)
                backend.cursors -= 1

        return Reader(self._last())


class _ManyWriters(_Broken):
    class writer(MemoryWriteTransaction):  # noqa: N801
        def close(self) -> None:
            self._state = None

    def write(self, timeout: float = 5.0) -> MemoryWriteTransaction:
        self.writer_lock = WriterLock("a lock for everybody")
        return super().write(timeout)


class _Forgetful(_Broken):
    """Opened again, it is empty."""


@pytest.mark.parametrize(
    ("broken", "check", "rule"),
    [
        (_ShortKeysFirst, "byte_order", "Keys sort as unsigned bytes"),
        (_WithoutBounds, "bounds", "lower is inclusive"),
        (_ForwardOnly, "bounds", "lower is inclusive"),
        (_BlindToItsWrites, "read_your_writes", "A write transaction sees its puts"),
        (_ForgetsSavepoints, "savepoints", "Savepoints nest"),
        (_Shifting, "snapshots", "A snapshot never changes"),
        (_KeepsWhatWasAborted, "abort_leaves_nothing", "abort, and leaving the block"),
        (_HoldsCursors, "abandoned_scans", "Scans that are dropped halfway"),
        (_ManyWriters, "single_writer", "A second writer gets BUSY"),
        (_Forgetful, "reopening", "What was committed is there"),
    ],
)
def test_the_kit_reports_what_is_broken(broken: type[_Broken], check: str, rule: str, tmp_path: Path) -> None:
    report = run_conformance(lambda folder: broken(), persistent=broken is _Forgetful, folder=tmp_path)
    failed = {outcome.check for outcome in report.failures}
    assert check in failed
    assert "point_operations" not in failed
    with pytest.raises(AssertionError, match=f"FAILED  {check}: {rule}"):
        report.require()


def test_unknown_backends_and_options_are_refused(tmp_path: Path) -> None:
    for action, text in (
        (lambda: open_backend("paper"), "unknown backend 'paper'; there are memory, lmdb, leveldb"),
        (lambda: open_backend("lmdb"), "backend 'lmdb' needs a path"),
        (lambda: open_backend("lmdb", tmp_path / "x", speed=1), "backend 'lmdb' has no option 'speed'"),
        (lambda: open_backend("lmdb", tmp_path / "x", synchronous="maybe"), "synchronous must be one of"),
    ):
        with pytest.raises(Error, match=text) as caught:
            action()
        assert caught.value.code is StatusCode.MISUSE


def test_batches_of_a_snapshot_follow_each_other(tmp_path: Path) -> None:
    with open_backend("lmdb", tmp_path / "data").write() as writer:
        items = [(b"%05d" % number, b"") for number in range(5000)]
        writer.put_many(items)
        batches = list(writer.scan(b"", None, batch_size=1000))
        assert list(chain(*batches)) == items
        # Small first, so that a short range does not read a whole batch.
        assert [len(batch) for batch in batches[:3]] == [16, 128, 1000]
