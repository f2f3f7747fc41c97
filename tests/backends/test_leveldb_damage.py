"""LevelDB files damaged on disk: a torn end is dropped, anything else is an error that changes nothing."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from quereus_store.backends.leveldb_backend import LeveldbBackend
from quereus_store.backends.leveldb_binding import plyvel
from quereus_store.errors import Error, StatusCode

COMMITS = 300
"""One record each; together they fill several blocks of 32 KiB."""

WRITER = """
import os, signal, sys
from quereus_store.backends import open_backend
backend = open_backend("leveldb", sys.argv[1], synchronous="off")
for number in range(int(sys.argv[2])):
    with backend.write() as writer:
        writer.put_many([(b"%04d-%d" % (number, row), bytes([row + 1]) * 100) for row in range(5)])
        writer.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def log_of_a_killed_writer(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes, dict[str, bytes]]:
    """The name and the bytes of the log, and all files."""
    folder = tmp_path_factory.mktemp("killed") / "data"
    subprocess.run([sys.executable, "-c", WRITER, str(folder), str(COMMITS)], timeout=60, check=False)
    files = {entry.name: entry.read_bytes() for entry in folder.iterdir()}
    (name,) = [name for name in files if name.endswith(".log")]
    assert len(files[name]) > 5 * 32 * 1024
    return name, files[name], files


def restore(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def whole_commits(backend: LeveldbBackend) -> int:
    """How many commits are there; those are the first ones, and each is whole."""
    with backend.read() as reader:
        keys = [key for batch in reader.scan_keys(b"", None) for key in batch]
    count = len(keys) // 5
    assert keys == [b"%04d-%d" % (number, row) for number in range(count) for row in range(5)]
    return count


def zeroed(log: bytes, start: int, end: int) -> bytes:
    return log[:start] + bytes(end - start) + log[end:]


def flipped(log: bytes, position: int) -> bytes:
    return log[:position] + bytes([log[position] ^ 0xFF]) + log[position + 1 :]


@pytest.mark.parametrize(
    "tear",
    [
        pytest.param(lambda log: log, id="intact"),
        pytest.param(lambda log: log[:-37], id="cut short"),
        pytest.param(lambda log: log[:-2000], id="several commits cut off"),
        pytest.param(lambda log: log + bytes(10_000), id="zeros appended"),
        pytest.param(lambda log: zeroed(log, len(log) - 300, len(log)), id="last bytes zeroed"),
        pytest.param(lambda log: zeroed(log, len(log) - 3000, len(log)), id="last commits zeroed"),
        pytest.param(lambda log: flipped(log, len(log) - 100), id="last commit damaged"),
    ],
)
def test_a_torn_end_of_the_log_is_dropped(
    tear: Callable[[bytes], bytes],
    log_of_a_killed_writer: tuple[str, bytes, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    name, log, files = log_of_a_killed_writer
    restore(tmp_path / "data", files | {name: tear(log)})
    backend = LeveldbBackend(tmp_path / "data")
    # What LevelDB cannot read ends with a block, so at most the commits of the last block are gone.
    assert COMMITS - 32 * 1024 // 600 <= whole_commits(backend) <= COMMITS
    with backend.write() as writer:
        writer.put(b"after", b"1")
        writer.commit()
    backend.close()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda log: flipped(log, len(log) // 2), id="a byte in the middle"),
        pytest.param(lambda log: flipped(log, 50), id="a byte in the first commit"),
        pytest.param(lambda log: zeroed(log, len(log) // 2, len(log) // 2 + 4096), id="a zeroed page"),
    ],
)
def test_damage_before_later_commits_is_an_error(
    damage: Callable[[bytes], bytes],
    log_of_a_killed_writer: tuple[str, bytes, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    name, log, files = log_of_a_killed_writer
    damaged = damage(log)
    restore(tmp_path / "data", files | {name: damaged})
    for _ in range(2):
        with pytest.raises(Error, match="its log is damaged before commits that can be read") as caught:
            LeveldbBackend(tmp_path / "data")
        assert caught.value.code is StatusCode.CORRUPT
    assert (tmp_path / "data" / name).read_bytes() == damaged
    with_losses = LeveldbBackend(tmp_path / "data", salvage=True)
    with with_losses.read() as reader:
        assert 0 < reader.count(b"", None) < COMMITS * 5
    with_losses.close()


def test_a_damaged_block_of_rows_is_an_error_where_it_is_read(tmp_path: Path) -> None:
    backend = LeveldbBackend(tmp_path / "data")
    rows = [(b"%05d" % number, Random(number).randbytes(100)) for number in range(5000)]
    with backend.write() as writer:
        writer.put_many(rows)
        writer.commit()
    backend.close()
    database = plyvel.DB(str(tmp_path / "data"))
    database.compact_range()
    database.close()
    (table,) = (tmp_path / "data").glob("*.ldb")
    content = table.read_bytes()
    position = content.index(rows[2500][1])
    table.write_bytes(flipped(content, position))
    backend = LeveldbBackend(tmp_path / "data")
    with backend.read() as reader:
        assert reader.get(b"00001") == rows[1][1]
        for read in (
            lambda: reader.get(b"02500"),
            lambda: reader.get_many([b"02500"]),
            lambda: list(reader.scan(b"", None)),
            lambda: list(reader.scan_values(b"", None, reverse=True)),
        ):
            with pytest.raises(Error, match=r"cannot read '.*data': .*checksum") as caught:
                read()
            assert caught.value.code is StatusCode.CORRUPT
    backend.close()
