"""What is particular to LevelDB: one process, overlays, faults, and places that are no database."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quereus_store.backends.leveldb_backend import LeveldbBackend
from quereus_store.errors import Error, StatusCode


def _content(backend: LeveldbBackend) -> dict[bytes, bytes]:
    with backend.read() as reader:
        return {key: value for batch in reader.scan(b"", None) for key, value in batch}


def test_a_second_process_is_told_that_the_database_is_busy(tmp_path: Path) -> None:
    backend = LeveldbBackend(tmp_path / "data")
    program = f"""
from quereus_store.backends import open_backend
from quereus_store.errors import Error
try:
    open_backend("leveldb", {str(tmp_path / "data")!r})
except Error as error:
    print(error.code.name, error)
"""
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert output.startswith("BUSY cannot open '")
    assert "LevelDB belongs to one process at a time" in output
    backend.close()


def test_the_overlay_merges_with_what_is_stored(tmp_path: Path) -> None:
    backend = LeveldbBackend(tmp_path / "data")
    stored = [(b"%04d" % number, b"old") for number in range(0, 3000, 2)]
    with backend.write() as writer:
        writer.put_many(stored)
        writer.commit()
    expected = dict(stored)
    with backend.write() as writer:
        changes = [(b"%04d" % number, b"new") for number in range(0, 3000, 3)]
        writer.put_many(changes)
        expected.update(changes)
        gone = [b"%04d" % number for number in range(0, 3000, 5)]
        writer.delete_many(gone)
        for key in gone:
            expected.pop(key, None)
        forward = [item for batch in writer.scan(b"", None, batch_size=70) for item in batch]
        backward = [item for batch in writer.scan(b"", None, reverse=True, batch_size=70) for item in batch]
        assert forward == sorted(expected.items())
        assert backward == forward[::-1]
        writer.commit()
    assert _content(backend) == expected


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, StatusCode.FULL), (errno.EIO, StatusCode.IOERR), (errno.EROFS, StatusCode.READONLY)],
    ids=["disk full", "input/output", "read-only"],
)
def test_a_failing_commit_leaves_the_last_one(tmp_path: Path, number: int, code: StatusCode) -> None:
    broken = False

    def fail(now: str) -> None:
        if broken:
            raise OSError(number, os.strerror(number))

    backend = LeveldbBackend(tmp_path / "data", faults=fail)
    with backend.write() as writer:
        writer.put(b"a", b"1")
        writer.commit()
    broken = True
    writer = backend.write()
    writer.put(b"a", b"2")
    with pytest.raises(Error, match=r"cannot write to '.*data'") as caught:
        writer.commit()
    assert caught.value.code is code
    broken = False
    assert _content(backend) == {b"a": b"1"}
    backend.write().abort()


def test_places_that_are_no_database_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letter.txt").write_text("x")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "CURRENT").write_text("MANIFEST-000001\n")
    (tmp_path / "damaged" / "MANIFEST-000001").write_text("junk" * 100)
    for name, options, code, text in (
        ("file", {}, StatusCode.CANTOPEN, "it is a file"),
        ("missing/data", {}, StatusCode.CANTOPEN, "the folder '.*missing' does not exist"),
        ("nowhere", {"create": False}, StatusCode.CANTOPEN, "the folder does not exist"),
        ("foreign", {}, StatusCode.NOTADB, "the folder holds other things than a LevelDB database"),
        ("damaged", {}, StatusCode.CORRUPT, "Corruption"),
    ):
        with pytest.raises(Error, match=f"cannot open '.*': {text}") as caught:
            LeveldbBackend(tmp_path / name, **options)  # type: ignore[arg-type]
        assert caught.value.code is code
    assert [path.name for path in (tmp_path / "foreign").iterdir()] == ["letter.txt"]


KILLED = """
import sys
from quereus_store.backends import open_backend
backend = open_backend("leveldb", sys.argv[1], synchronous="off")
for number in range(10**9):
    with backend.write() as writer:
        writer.put_many([(b"a", b"%d" % number), (b"b", b"%d" % number)])
        writer.commit()
    if number == 100:
        print("busy", flush=True)
"""


def test_a_killed_process_leaves_whole_commits(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    process.kill()
    process.communicate()
    content = _content(LeveldbBackend(tmp_path / "data"))
    assert content[b"a"] == content[b"b"]
    assert int(content[b"a"]) >= 100


FILL = """
import resource, sys
from quereus_store.backends import open_backend
from quereus_store.errors import Error
backend = open_backend("leveldb", sys.argv[1])
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
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file sizes")
def test_a_write_that_the_system_refuses_loses_no_earlier_commit(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path / "data")]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert output.split() == ["FULL", "True"]
    backend = LeveldbBackend(tmp_path / "data")
    with backend.write() as writer:
        assert writer.count(b"0-", b"0.") == 200
        writer.put(b"after", b"1")
        writer.commit()
    assert _content(backend)[b"after"] == b"1"


DISK_FULL_FOR_A_WHILE = """
import os, resource, signal, sys
from quereus_store.backends import open_backend
from quereus_store.errors import Error
backend = open_backend("leveldb", sys.argv[1])
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
def write(number):
    with backend.write() as writer:
        writer.put_many([(b"%d-%d" % (number, row), bytes(1000)) for row in range(200)])
        writer.commit()
kept = 0
resource.setrlimit(resource.RLIMIT_FSIZE, (1_060_921, most))
try:
    while kept < 50:
        write(kept)
        kept += 1
except Error as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    print(error.code.name)
for number in range(kept, kept + 3):
    write(number)
print(kept + 3, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file sizes")
def test_commits_after_one_that_failed_survive_a_kill(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DISK_FULL_FOR_A_WHILE, str(tmp_path / "data")]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    failure, commits = output.split()
    assert failure == "FULL"
    assert len(_content(LeveldbBackend(tmp_path / "data"))) == int(commits) * 200


def test_a_commit_that_fails_again_says_what_helps(tmp_path: Path) -> None:
    def fail(_: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    backend = LeveldbBackend(tmp_path / "data", faults=fail)
    for ending in (
        "No space left on device",
        "once that is mended, close the database and open it again to write",
    ):
        writer = backend.write()
        writer.put(b"a", b"1")
        with pytest.raises(Error, match=ending) as caught:
            writer.commit()
        assert caught.value.code is StatusCode.FULL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_child_refuses_and_the_parent_goes_on(tmp_path: Path) -> None:
    backend = LeveldbBackend(tmp_path / "data")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            backend.read()
        except Error as error:
            os.write(writing, error.message.encode())
        finally:
            backend.close()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert "it was opened before the process was forked" in pipe.read()
    os.waitpid(child, 0)
    with backend.write() as writer:
        writer.put(b"a", b"1")
        writer.commit()
    assert _content(backend) == {b"a": b"1"}
    backend.close()
