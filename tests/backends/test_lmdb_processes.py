"""Several processes on one LMDB file: reading, writing in turn, growing, dying, forking."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quereus_store.backends.lmdb_backend import LmdbBackend
from quereus_store.errors import Error, StatusCode

PRELUDE = """
import sys
from quereus_store.backends.lmdb_backend import LmdbBackend
from quereus_store.errors import Error
path = sys.argv[1]
"""


def _start(path: Path, program: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + program, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _run(path: Path, program: str) -> str:
    process = _start(path, program)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output.strip()


def _get(backend: LmdbBackend, key: bytes) -> bytes | None:
    with backend.read() as reader:
        return reader.get(key)


def test_processes_see_each_others_commits(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    with backend.write() as writer:
        writer.put(b"here", b"1")
        writer.commit()
    program = """
backend = LmdbBackend(path)
with backend.write() as writer:
    print(writer.get(b"here"))
    writer.put(b"there", b"2")
    writer.commit()
"""
    assert _run(tmp_path / "data", program) == "b'1'"
    assert _get(backend, b"there") == b"2"


def test_a_writer_in_another_process_is_busy_then_gone(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    program = """
writer = LmdbBackend(path).write()
writer.put(b"a", b"lost")
print("begun", flush=True)
sys.stdin.read()
"""
    process = _start(tmp_path / "data", program)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    with pytest.raises(
        Error, match=r"database is locked: another transaction is writing to '.*data'"
    ) as caught:
        backend.write(timeout=0.02)
    assert caught.value.code is StatusCode.BUSY
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # The lock dies with its process, and so does what was not committed.
    with backend.write(timeout=10) as writer:
        assert writer.get(b"a") is None
        writer.put(b"a", b"1")
        writer.commit()
    assert _get(backend, b"a") == b"1"


def test_a_database_that_grew_elsewhere_is_followed(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", map_size=2**18)
    program = """
backend = LmdbBackend(path, map_size=2**18, synchronous="off")
with backend.write() as writer:
    writer.put_many([(b"%06d" % number, bytes(1000)) for number in range(5000)])
    writer.commit()
"""
    _run(tmp_path / "data", program)
    with backend.read() as reader:
        assert reader.count(b"", None) == 5000
    _run(tmp_path / "data", program.replace("%06d", "x%06d"))
    with backend.write() as writer:
        writer.put(b"y", b"1")
        writer.commit()
    with backend.read() as reader:
        assert reader.count(b"", None) == 10001


def test_a_killed_process_leaves_whole_commits(tmp_path: Path) -> None:
    program = """
backend = LmdbBackend(path, synchronous="off")
for number in range(10**9):
    with backend.write() as writer:
        writer.put_many([(b"a", b"%d" % number), (b"b", b"%d" % number)])
        writer.commit()
    if number == 100:
        print("busy", flush=True)
"""
    process = _start(tmp_path / "data", program)
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    process.kill()
    process.communicate()
    backend = LmdbBackend(tmp_path / "data")
    with backend.read() as reader:
        first, second = reader.get_many([b"a", b"b"])
    assert first is not None
    assert first == second
    assert int(first) >= 100


def test_slots_of_dead_readers_are_cleared(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", max_readers=8)
    program = """
import os
backend = LmdbBackend(path, max_readers=8)
readers = [backend.read() for _ in range(6)]
os.kill(os.getpid(), 9)
"""
    process = _start(tmp_path / "data", program)
    process.communicate(timeout=60)
    readers = [backend.read() for _ in range(8)]
    with pytest.raises(Error, match="too many read transactions") as caught:
        backend.read()
    assert caught.value.code is StatusCode.BUSY
    for reader in readers:
        reader.close()
    backend.read().close()


FILL = """
import resource
backend = LmdbBackend(path)
def write(number):
    with backend.write() as writer:
        writer.put_many([(b"%d-%d" % (number, row), bytes(1000)) for row in range(200)])
        writer.commit()
write(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
written = 1
try:
    while written < 50:
        write(written)
        written += 1
except Error as error:
    print(error.code.name)
with backend.read() as reader:
    print(reader.count(b"", None) == written * 200)
with backend.write() as writer:
    writer.delete_range(b"0", b"1")
    writer.put(b"after", b"1")
    writer.commit()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file sizes")
def test_a_write_that_the_system_refuses_loses_no_earlier_commit(tmp_path: Path) -> None:
    assert _run(tmp_path / "data", FILL).split() == ["IOERR", "True"]
    backend = LmdbBackend(tmp_path / "data")
    assert _get(backend, b"after") == b"1"
    assert _get(backend, b"0-0") is None


# --- forking ----------------------------------------------------------------------------------------------


def _in_child(action: object) -> str:
    """Run a function in a forked child; what it printed to the pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(action()).encode())  # type: ignore[operator]
        except Exception as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


@needs_fork
def test_an_idle_database_survives_a_fork_on_both_sides(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    with backend.write() as writer:
        writer.put(b"parent", b"1")
        writer.commit()

    def write_in_child() -> bytes | None:
        with backend.write() as writer:
            writer.put(b"child", b"2")
            writer.commit()
        return _get(backend, b"parent")

    assert _in_child(write_in_child) == "b'1'"
    assert _get(backend, b"child") == b"2"
    with backend.write() as writer:
        writer.put(b"parent", b"3")
        writer.commit()
    assert _get(backend, b"parent") == b"3"


@needs_fork
def test_a_fork_under_a_snapshot_leaves_the_snapshot_alone(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data", synchronous="off")
    with backend.write() as writer:
        writer.put_many([(b"%04d" % number, b"old") for number in range(1000)])
        writer.commit()
    reader = backend.read()

    def use_in_child() -> None:
        nonlocal reader
        reader.close()
        del reader
        backend.read()

    answer = _in_child(use_in_child)
    assert "it was forked while a transaction was open" in answer
    # Were the parent's reader slot touched, these commits would overwrite the pages it reads.
    for round_ in range(5):
        with backend.write() as writer:
            writer.put_many([(b"%04d" % number, b"new%d" % round_) for number in range(1000)])
            writer.commit()
    assert [value for batch in reader.scan_values(b"", None) for value in batch] == [b"old"] * 1000


@needs_fork
def test_a_fork_under_a_write_transaction_leaves_it_to_the_parent(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "data")
    writer = backend.write()
    writer.put(b"a", b"1")

    def use_in_child() -> None:
        try:
            writer.commit()
        except Error as error:
            raise RuntimeError(error.message) from None
        finally:
            writer.abort()

    assert "cannot be used in a forked process" in _in_child(use_in_child)
    writer.put(b"b", b"2")
    writer.commit()
    assert (_get(backend, b"a"), _get(backend, b"b")) == (b"1", b"2")
    with backend.write() as again:
        again.put(b"c", b"3")
        again.commit()


@needs_fork
@pytest.mark.parametrize(
    "use", ["get", "get_many", "scan", "put", "put_many", "delete", "savepoint", "commit"]
)
def test_no_use_of_a_write_transaction_passes_a_fork(use: str, tmp_path: Path) -> None:
    """A child that was told that it had written would lose what it wrote."""
    backend = LmdbBackend(tmp_path / "data")
    writer = backend.write()
    writer.put(b"a", b"1")
    uses = {
        "get": lambda: writer.get(b"a"),
        "get_many": lambda: writer.get_many([b"a"]),
        "scan": lambda: list(writer.scan(b"", None)),
        "put": lambda: writer.put(b"b", b"2"),
        "put_many": lambda: writer.put_many([(b"b", b"2")]),
        "delete": lambda: writer.delete(b"a"),
        "savepoint": writer.savepoint,
        "commit": writer.commit,
    }
    assert "a write transaction cannot be used in a forked process" in _in_child(uses[use])
    writer.commit()
    assert (_get(backend, b"a"), _get(backend, b"b")) == (b"1", None)
