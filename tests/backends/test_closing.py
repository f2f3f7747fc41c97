"""A database may be closed while other threads are at work in it: they are told so, whatever they do."""

import subprocess
import sys
from pathlib import Path

import pytest

AT_WORK = r"""
import random, sys, threading
from quereus_store.backends import open_backend
from quereus_store.errors import Error, StatusCode

sys.setswitchinterval(1e-5)
kind, folder = sys.argv[1:]
keys = [b"%06d" % number for number in range(3000)]


def read_keys(database):
    with database.read() as snapshot:
        for key in random.sample(keys, 50):
            snapshot.get(key)
        snapshot.get_many(keys[::50])


def read_forwards(database):
    with database.read() as snapshot:
        for batch in snapshot.scan(b"", None, batch_size=100):
            assert batch


def read_backwards(database):
    with database.read() as snapshot:
        for batch in snapshot.scan_keys(b"", None, reverse=True, batch_size=100):
            assert batch


def forget(database):
    batches = database.read().scan(b"", None, batch_size=100)
    next(batches)


def write(database):
    writer = database.write(1.0)
    try:
        token = writer.savepoint()
        writer.put_many([(key, b"") for key in random.sample(keys, 50)])
        list(writer.scan(b"0001", b"0002"))
        writer.rollback_to(token)
        writer.insert_many([(b"x", b"")])
        writer.delete(b"x")
        writer.commit()
    finally:
        writer.abort()
    if kind == "lmdb":
        # Only this thread can end its own.
        threading.Event().wait(0.001)


for number in range(5):
    database = open_backend(kind, *([] if kind == "memory" else [f"{folder}/{number}"]))
    with database.write() as writer:
        writer.put_many([(key, b"v" * 200) for key in keys])
        writer.commit()
    errors = []

    def work(task):
        try:
            while True:
                task(database)
        except Error as error:
            errors.append((task.__name__, error.code, str(error)))

    tasks = (read_keys, read_forwards, read_backwards, forget, write)
    threads = [threading.Thread(target=work, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    threading.Event().wait(random.random() / 100)
    while True:
        try:
            database.close()
            break
        except Error as error:
            assert kind == "lmdb" and error.code is StatusCode.BUSY, error
    for thread in threads:
        thread.join(20)
    assert sorted(task for task, _, _ in errors) == sorted(task.__name__ for task in tasks), errors
    for _, code, message in errors:
        assert code is StatusCode.MISUSE and "closed" in message, message
print("all were told")
"""


@pytest.mark.parametrize("kind", ["memory", "lmdb", "leveldb"])
def test_closing_while_threads_are_at_work(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_WORK, kind, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "all were told\n"), done.stderr
