"""What is particular to LMDB: growing, threads, faults, and places that are no database."""

import errno
import threading
from pathlib import Path

import lmdb
import pytest

from quereus_store.backends.lmdb_backend import LmdbBackend
from quereus_store.backends.lmdb_transactions import LmdbWriteTransaction
from quereus_store.errors import Error, StatusCode

SMALL_MAP = 2**17


def _content(backend: LmdbBackend) -> dict[bytes, bytes]:
    with backend.read() as reader:
        return {key: value for batch in reader.scan(b"", None) for key, value in batch}


# --- growing ----------------------------------------------------------------------------------------------


def test_one_transaction_far_beyond_the_map_succeeds(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", map_size=SMALL_MAP, synchronous="off")
    items = [(b"%08d" % number, bytes(1000)) for number in range(20_000)]
    with backend.write() as writer:
        writer.put(b"first", b"1")
        mark = writer.savepoint()
        for start in range(0, len(items), 500):
            assert writer.insert_many(items[start : start + 500]) is None
        assert writer.insert_many([(b"second", b"2"), items[7]]) == 1
        writer.release(mark)
        writer.commit()
    content = _content(backend)
    assert len(content) == len(items) + 2
    assert (content[b"first"], content[b"second"]) == (b"1", b"2")
    backend.close()


def test_a_transaction_that_grows_can_still_roll_back(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", map_size=SMALL_MAP, synchronous="off")
    with backend.write() as writer:
        writer.put_many([(b"a", b"1"), (b"b", b"1")])
        writer.commit()
    with backend.write() as writer:
        writer.put(b"a", b"2")
        mark = writer.savepoint()
        writer.delete(b"b")
        writer.put_many([(b"c%08d" % number, bytes(1000)) for number in range(2000)])
        writer.put(b"a", b"3")
        writer.rollback_to(mark)
        writer.put(b"d", b"4")
        writer.commit()
    assert _content(backend) == {b"a": b"2", b"b": b"1", b"d": b"4"}


def test_long_keys_survive_growing_in_the_same_transaction(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", map_size=SMALL_MAP, synchronous="off")
    with backend.write() as writer:
        writer.put(b"k" * 1000, b"1")
        writer.put_many([(b"%04d" % number, bytes(1000)) for number in range(500)])
        writer.commit()
    with backend.read() as reader:
        assert list(reader.scan(b"k", b"l")) == [[(b"k" * 1000, b"1")]]


def test_many_small_transactions_grow_the_map(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", map_size=SMALL_MAP, synchronous="off")
    for number in range(300):
        with backend.write() as writer:
            writer.put(b"%04d" % number, bytes(5000))
            writer.commit()
    assert len(_content(backend)) == 300


def test_growing_waits_for_readers_and_keeps_the_transaction(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", map_size=SMALL_MAP, synchronous="off")
    with backend.write() as writer:
        writer.put(b"old", b"1")
        writer.commit()
    reader = backend.read()
    writer = backend.write(timeout=0.01)
    writer.put(b"kept", b"1")
    big = [(b"big%04d" % number, bytes(1000)) for number in range(500)]
    with pytest.raises(
        Error, match=r"cannot enlarge .*: 1 transactions of this process are still open"
    ) as caught:
        writer.put_many(big)
    assert caught.value.code is StatusCode.BUSY
    assert writer.get(b"kept") == b"1"
    assert writer.count(b"big", b"bih") == 0
    assert reader.get(b"old") == b"1"
    reader.close()
    writer.put_many(big)
    writer.commit()
    assert len(_content(backend)) == 502


def test_growing_goes_on_when_a_reader_in_another_thread_ends(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", map_size=SMALL_MAP, synchronous="off")
    opened, finish = threading.Event(), threading.Event()

    def read() -> None:
        with backend.read():
            opened.set()
            finish.wait(10)

    thread = threading.Thread(target=read)
    thread.start()
    opened.wait(10)
    writer = backend.write(timeout=10)
    threading.Timer(0.05, finish.set).start()
    writer.put_many([(b"%04d" % number, bytes(1000)) for number in range(500)])
    writer.commit()
    thread.join()
    assert len(_content(backend)) == 500


def test_the_map_is_generous_unless_the_system_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    really_open = lmdb.open

    def refuse(*arguments: object, map_size: int, **options: object) -> object:
        asked.append(map_size)
        if map_size > 2**30:
            raise lmdb.MemoryError("Cannot allocate memory")
        return really_open(*arguments, map_size=map_size, **options)

    monkeypatch.setattr(lmdb, "open", refuse)
    LmdbBackend(tmp_path / "data").close()
    assert asked == [256 * 2**30 >> step for step in range(9)]


def test_a_full_map_without_a_journal_ends_the_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quereus_store.backends.lmdb_transactions.JOURNAL_BELOW", 0)
    backend = LmdbBackend(tmp_path / "data", map_size=SMALL_MAP)
    writer = backend.write()
    with pytest.raises(Error, match="reached its map size") as caught:
        writer.put_many([(b"%04d" % number, bytes(1000)) for number in range(500)])
    assert caught.value.code is StatusCode.FULL
    with pytest.raises(Error, match="the transaction was aborted because the database is full"):
        writer.commit()
    assert _content(backend) == {}
    backend.write().abort()


# --- faults -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (lmdb.DiskError("No space left on device"), StatusCode.FULL),
        (OSError(errno.ENOSPC, "No space left on device"), StatusCode.FULL),
        (OSError(errno.EIO, "Input/output error"), StatusCode.IOERR),
        (lmdb.CorruptedError("MDB_CORRUPTED"), StatusCode.CORRUPT),
        (OSError(errno.EROFS, "Read-only file system"), StatusCode.READONLY),
    ],
    ids=["disk full", "no space", "input/output", "corrupted", "read-only"],
)
@pytest.mark.parametrize("moment", ["write", "commit"])
def test_a_failing_disk_loses_nothing_that_was_committed(
    tmp_path: Path, fault: Exception, code: StatusCode, moment: str
) -> None:
    broken = False

    def fail(now: str) -> None:
        if broken and now == moment:
            raise fault

    backend = LmdbBackend(tmp_path / "data", faults=fail)
    with backend.write() as writer:
        writer.put(b"a", b"1")
        writer.commit()
    broken = True
    writer = backend.write()

    def write() -> None:
        writer.put(b"a", b"2")
        writer.commit()

    with pytest.raises(Error, match=r"cannot write to '.*data'") as caught:
        write()
    assert caught.value.code is code
    with pytest.raises(Error, match="cannot go on: the transaction was aborted because"):
        writer.put(b"b", b"1")
    broken = False
    assert _content(backend) == {b"a": b"1"}
    with backend.write() as writer:
        writer.put(b"a", b"3")
        writer.commit()
    assert _content(backend) == {b"a": b"3"}


# --- places -----------------------------------------------------------------------------------------------


def test_places_that_are_no_database_are_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database\n" * 1000)
    (tmp_path / "short").write_text("x")
    for name, options, code, text in (
        (".", {}, StatusCode.CANTOPEN, "it is a folder"),
        ("missing/data", {}, StatusCode.CANTOPEN, "the folder '.*missing' does not exist"),
        ("nowhere", {"create": False}, StatusCode.CANTOPEN, "the file does not exist"),
        ("nowhere", {"readonly": True}, StatusCode.CANTOPEN, "the file does not exist"),
        ("text", {}, StatusCode.NOTADB, "it is not an LMDB file"),
        ("short", {}, StatusCode.NOTADB, "it is not an LMDB file"),
    ):
        with pytest.raises(Error, match=f"cannot open '.*': {text}") as caught:
            LmdbBackend(tmp_path / name, **options)  # type: ignore[arg-type]
        assert caught.value.code is code
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith("-lock")) == [
        "short",
        "text",
    ]


def test_a_read_only_database_reads_and_refuses_to_write(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    with backend.write() as writer:
        writer.put(b"a", b"1")
        writer.commit()
    backend.close()
    backend = LmdbBackend(tmp_path / "data", readonly=True)
    assert _content(backend) == {b"a": b"1"}
    with pytest.raises(Error, match="it was opened read-only") as caught:
        backend.write()
    assert caught.value.code is StatusCode.READONLY


def test_a_file_is_opened_once_in_a_process(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    with pytest.raises(Error, match="already open in this process") as caught:
        LmdbBackend(tmp_path / "data")
    assert caught.value.code is StatusCode.MISUSE
    backend.close()
    LmdbBackend(tmp_path / "data").close()


def test_a_database_is_one_file_and_its_lock_file(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "data-lock"]
    # The map is an address range, not a size on disk.
    assert backend.disk_size() < 2**20


# --- threads ----------------------------------------------------------------------------------------------


def test_a_write_transaction_belongs_to_its_thread(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    writers: list[LmdbWriteTransaction] = []
    begun, done = threading.Event(), threading.Event()

    def write() -> None:
        writers.append(backend.write())
        begun.set()
        done.wait(60)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(60)
    with pytest.raises(Error, match="can only be used by the thread that began it"):
        writers[0].put(b"a", b"1")
    with pytest.raises(Error, match="another thread has a write transaction open") as caught:
        backend.close()
    assert caught.value.code is StatusCode.BUSY
    done.set()
    thread.join()


@pytest.mark.parametrize("end", ["commit", "abort", "drop"])
@pytest.mark.parametrize("map_size", [2**17, 2**30])
def test_a_write_transaction_outlives_its_thread(end: str, map_size: int, tmp_path: Path) -> None:
    """A pool may begin in one worker and end in another after that: nothing stays locked for good."""
    backend = LmdbBackend(tmp_path / "data", map_size=map_size)
    writers: list[LmdbWriteTransaction] = []

    def begin() -> None:
        writers.append(backend.write())
        writers[0].put(b"a", b"1")

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    with pytest.raises(Error, match="database is locked"):
        backend.write(timeout=0)
    writer = writers.pop()
    writer.put(b"b", b"2")
    assert writer.get(b"a") == b"1"
    if end == "commit":
        writer.commit()
    elif end == "abort":
        writer.abort()
    del writer
    with backend.write(timeout=0) as second:
        second.put(b"c", b"3")
        second.commit()
    kept = {b"a": b"1", b"b": b"2"} if end == "commit" else {}
    assert _content(backend) == {**kept, b"c": b"3"}
    backend.close()
    assert _content(LmdbBackend(tmp_path / "data")) == {**kept, b"c": b"3"}


def test_what_a_thread_left_open_when_it_ended_does_not_keep_the_database_open(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    writers: list[LmdbWriteTransaction] = []
    thread = threading.Thread(target=lambda: writers.append(backend.write()))
    thread.start()
    thread.join()
    backend.close()
    again = LmdbBackend(tmp_path / "data")
    with again.write(timeout=0) as writer:
        writer.put(b"a", b"1")
        writer.commit()
    assert _content(again) == {b"a": b"1"}


def test_a_transaction_stranded_by_another_thread_is_ended_when_its_own_has_ended(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    writers: list[LmdbWriteTransaction] = []
    begun, done = threading.Event(), threading.Event()

    def write() -> None:
        writers.append(backend.write())
        begun.set()
        done.wait(60)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(60)
    writers.pop().abort()
    with pytest.raises(Error, match="database is locked"):
        backend.write(timeout=0)
    done.set()
    thread.join()
    with backend.write(timeout=0) as writer:
        writer.put(b"a", b"1")
        writer.commit()
    assert _content(backend) == {b"a": b"1"}


def test_a_write_transaction_dropped_by_another_thread_is_ended_by_its_own(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    writer = backend.write()
    writer.put(b"a", b"1")
    thread = threading.Thread(target=writer.abort)
    thread.start()
    thread.join()
    with backend.write(timeout=0) as second:
        second.put(b"b", b"1")
        second.commit()
    assert _content(backend) == {b"b": b"1"}


def test_long_keys_that_come_with_a_commit_are_seen_by_the_next_snapshot(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    assert _content(backend) == {}
    with backend.write() as writer:
        assert list(writer.scan(b"a", None)) == []
        writer.put(b"a" * 1000, b"1")
        writer.commit()
    assert _content(backend) == {b"a" * 1000: b"1"}
    with backend.read() as reader:
        assert list(reader.scan_keys(b"a", b"b")) == [[b"a" * 1000]]


def test_aborting_does_not_wait_for_busy_readers(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", synchronous="off")
    with backend.write() as writer:
        writer.put_many([(b"%04d" % number, b"") for number in range(1000)])
        writer.commit()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            with backend.read() as reader:
                assert reader.count(b"", None) == 1000

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with backend.write() as writer:
            writer.delete_range(b"", None)
    done.set()
    for thread in threads:
        thread.join()


def test_an_unfinished_scan_does_not_keep_its_transaction(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    writer = backend.write()
    writer.put_many([(b"%04d" % number, b"") for number in range(1000)])
    batches = writer.scan_keys(b"", None, batch_size=10)
    assert len(next(batches)) == 10
    writer.abort()
    with pytest.raises(Error, match="closed transaction") as caught:
        next(batches)
    assert caught.value.code is StatusCode.MISUSE
    backend.write(timeout=0).abort()
