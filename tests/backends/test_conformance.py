"""Every built-in backend keeps the contract, and the kit notices one that does not."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from quereus_store.backends import BACKENDS, Backend, open_backend
from quereus_store.backends.conformance import CHECKS, run_conformance
from quereus_store.backends.contract import ReadTransaction, WriteTransaction
from quereus_store.backends.memory import MemoryBackend, MemoryReadTransaction
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


class _Unordered(MemoryReadTransaction):
    """A snapshot that forgets about bounds."""

    def scan(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False, batch_size: int = 1000
    ) -> Iterator[list[tuple[bytes, bytes]]]:
        return super().scan(b"", None, reverse=reverse, batch_size=batch_size)


class _Broken(MemoryBackend):
    def read(self) -> MemoryReadTransaction:
        return _Unordered(self._last())


def test_the_kit_reports_what_is_broken(tmp_path: Path) -> None:
    report = run_conformance(lambda folder: _Broken(), persistent=False, folder=tmp_path)
    assert "bounds" in {outcome.check for outcome in report.failures}
    assert "byte_order" not in {outcome.check for outcome in report.failures}
    with pytest.raises(AssertionError, match=r"FAILED  bounds: lower is inclusive"):
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
