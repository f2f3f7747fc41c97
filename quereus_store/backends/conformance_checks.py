"""The checks of the conformance kit: each function proves the rule in its docstring.

Every check gets a fresh database, the function that opens one, and the folder that is its place.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from quereus_store.backends.contract import Backend, Item, ReadTransaction, WriteTransaction
from quereus_store.errors import Error, StatusCode

Opener = Callable[[Path], Backend]
Check = Callable[[Backend, Opener, Path], None]


def _expect(actual: object, expected: object, what: str) -> None:
    if actual != expected:
        raise AssertionError(f"{what}: got {_shorten(actual)}, expected {_shorten(expected)}")


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"


def _expect_error(code: StatusCode, action: Callable[[], object], what: str) -> None:
    try:
        action()
    except Error as error:
        _expect(error.code, code, what)
    else:
        raise AssertionError(f"{what}: no error, expected {code.name}")


def _fill(backend: Backend, items: Sequence[Item]) -> None:
    with backend.write() as writer:
        writer.put_many(items)
        writer.commit()


def _all(
    transaction: ReadTransaction, lower: bytes = b"", upper: bytes | None = None, **options: Any
) -> list[Item]:
    return list(chain.from_iterable(transaction.scan(lower, upper, **options)))


def _numbered(count: int) -> list[Item]:
    return [(b"k%06d" % number, b"v%d" % number) for number in range(count)]


# --- the checks -------------------------------------------------------------------------------------------


def point_operations(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """get, put, delete; an empty value is not an absent one; deleting an absent key is no error."""
    with backend.write() as writer:
        writer.put(b"a", b"1")
        writer.put(b"empty", b"")
        writer.delete(b"absent")
        _expect(writer.get(b"a"), b"1", "own write")
        writer.put(b"a", b"2")
        writer.commit()
    with backend.read() as reader:
        _expect(reader.get(b"a"), b"2", "replaced value")
        _expect(reader.get(b"empty"), b"", "empty value")
        _expect(reader.get(b"absent"), None, "absent key")
        _expect(reader.get(b"empt"), None, "prefix of a key")


def get_many_is_positional(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """get_many answers each position: None for absent keys, repeated keys each time, [] for []."""
    _fill(backend, [(b"a", b"1"), (b"b", b"")])
    with backend.read() as reader:
        _expect(reader.get_many([b"b", b"x", b"a", b"b"]), [b"", None, b"1", b""], "get_many")
        _expect(reader.get_many([]), [], "get_many of nothing")


ORDERED = [
    b"\0",
    b"\0\0",
    b"\0\1",
    b"\1",
    b"a",
    b"a\0",
    b"a\0\0",
    b"a\1",
    b"aa",
    b"b",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff",
]


def byte_order(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Keys sort as unsigned bytes, a prefix before its extensions."""
    shuffled = [(key, b"") for key in ORDERED]
    Random(1).shuffle(shuffled)
    _fill(backend, shuffled)
    with backend.read() as reader:
        _expect([key for key, _ in _all(reader)], ORDERED, "order")
        _expect([key for key, _ in _all(reader, reverse=True)], ORDERED[::-1], "reverse order")


def bounds(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """lower is inclusive, upper exclusive, both ways and in every kind of scan; crossed bounds are empty."""
    items = [(key, b"v" + key) for key in ORDERED]
    _fill(backend, items)
    limits = [b"", *ORDERED, b"a\0\1", b"zz", b"\xff\xff\xff"]
    with backend.read() as reader:
        for lower in limits:
            for upper in (*limits, None):
                inside = [item for item in items if item[0] >= lower and (upper is None or item[0] < upper)]
                _expect_scans(reader, lower, upper, inside)


def _expect_scans(
    reader: ReadTransaction, lower: bytes, upper: bytes | None, inside: list[Item], batch_size: int = 3
) -> None:
    for reverse in (False, True):
        expected = inside[::-1] if reverse else inside
        what = f"scan of [{lower!r}, {upper!r}) reverse={reverse}"
        batches = list(reader.scan(lower, upper, reverse=reverse, batch_size=batch_size))
        _expect(list(chain(*batches)), expected, what)
        _expect(all(1 <= len(batch) <= batch_size for batch in batches), True, f"sizes of batches in {what}")
        keys = reader.scan_keys(lower, upper, reverse=reverse, batch_size=batch_size)
        _expect(list(chain(*keys)), [key for key, _ in expected], f"keys, {what}")
        values = reader.scan_values(lower, upper, reverse=reverse, batch_size=batch_size)
        _expect(list(chain(*values)), [value for _, value in expected], f"values, {what}")
        for limit in (0, 1, len(inside), len(inside) + 1):
            first = reader.first_values(lower, upper, limit, reverse=reverse)
            _expect(first, [value for _, value in expected[:limit]], f"first {limit} values, {what}")
    _expect(reader.count(lower, upper), len(inside), f"count of [{lower!r}, {upper!r})")


def batches(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Long ranges come whole in batches of any size, also when the range ends on the edge of one."""
    items = _numbered(2500)
    _fill(backend, items)
    with backend.read() as reader:
        for size, start, stop in ((1000, 0, 2000), (7, 3, 703), (1, 100, 140), (5000, 0, 2500), (16, 0, 144)):
            upper = items[stop][0] if stop < len(items) else None
            _expect_scans(reader, items[start][0], upper, items[start:stop], size)


def read_your_writes(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """A write transaction sees its puts and deletes merged over what was committed, in every operation."""
    _fill(backend, _numbered(50))
    expected = dict(_numbered(50))
    random = Random(2)
    with backend.write() as writer:
        for step in range(200):
            key = b"k%06d" % random.randrange(80)
            if random.random() < 0.4:
                writer.delete(key)
                expected.pop(key, None)
            else:
                writer.put(key, b"w%d" % step)
                expected[key] = b"w%d" % step
        items = sorted(expected.items())
        _expect_scans(writer, b"", None, items)
        _expect_scans(writer, b"k000010", b"k000060", [i for i in items if b"k000010" <= i[0] < b"k000060"])
        keys = [b"k%06d" % number for number in range(80)]
        _expect(writer.get_many(keys), [expected.get(key) for key in keys], "get_many")
        writer.commit()
    with backend.read() as reader:
        _expect(_all(reader), items, "after commit")


def bulk_writes(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """put_many (last of equal keys wins), delete_many, delete_range and its count."""
    with backend.write() as writer:
        writer.put_many([(b"b", b"1"), (b"a", b"1"), (b"b", b"2")])
        _expect(_all(writer), [(b"a", b"1"), (b"b", b"2")], "put_many")
        writer.put_many([])
        writer.delete_many([b"a", b"absent", b"a"])
        writer.delete_many([])
        _expect(_all(writer), [(b"b", b"2")], "delete_many")
        writer.put_many(_numbered(1500))
        _expect(writer.delete_range(b"k000100", b"k001400"), 1300, "count of delete_range")
        _expect(writer.delete_range(b"k000100", b"k001400"), 0, "count of an empty delete_range")
        left = [item for item in _numbered(1500) if not b"k000100" <= item[0] < b"k001400"]
        _expect(_all(writer, b"k"), left, "after delete_range")
        _expect(writer.delete_range(b"", None), len(left) + 1, "delete_range of everything")
        writer.commit()
    with backend.read() as reader:
        _expect(_all(reader), [], "everything is gone")


def insert_many(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """insert_many stops at the first existing key, keeps the items before it, and returns its index."""
    _fill(backend, [(b"c", b"old")])
    with backend.write() as writer:
        _expect(writer.insert_many([]), None, "nothing")
        _expect(writer.insert_many([(b"a", b"1"), (b"b", b"2")]), None, "new sorted keys")
        _expect(
            writer.insert_many([(b"f", b"1"), (b"e", b"2"), (b"c", b"3"), (b"g", b"4")]), 2, "an existing key"
        )
        _expect(
            writer.insert_many([(b"x", b"1"), (b"y", b"2"), (b"x", b"3"), (b"z", b"4")]), 2, "a repeated key"
        )
        expected = [
            (b"a", b"1"),
            (b"b", b"2"),
            (b"c", b"old"),
            (b"e", b"2"),
            (b"f", b"1"),
            (b"x", b"1"),
            (b"y", b"2"),
        ]
        _expect(_all(writer), expected, "content")
        writer.delete(b"c")
        _expect(writer.insert_many([(b"c", b"new")]), None, "a key deleted before")
        _expect(writer.get(b"c"), b"new", "its value")


def insert(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """insert stores what is absent and says so, leaves what exists, and is undone with its savepoint."""
    _fill(backend, [(b"c", b"old")])
    with backend.write() as writer:
        _expect(writer.insert(b"a", b"1"), True, "an absent key")
        _expect(writer.insert(b"a", b"2"), False, "a key of this transaction")
        _expect(writer.insert(b"c", b"new"), False, "a committed key")
        mark = writer.savepoint()
        _expect(writer.insert(b"b", b""), True, "an empty value")
        writer.delete(b"c")
        _expect(writer.insert(b"c", b"new"), True, "a key deleted before")
        _expect(_all(writer), [(b"a", b"1"), (b"b", b""), (b"c", b"new")], "content")
        writer.rollback_to(mark)
        writer.commit()
    with backend.read() as reader:
        _expect(_all(reader), [(b"a", b"1"), (b"c", b"old")], "after rolling back")


def put_new(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """put_new stores new keys in any order; a wrong caller is told, and existing keys keep their values."""
    _fill(backend, [(b"c", b"old")])
    with backend.write() as writer:
        _expect(writer.put_new([]), True, "nothing")
        _expect(writer.put_new([(b"f", b"1"), (b"a", b"2"), (b"d" * 600, b"3")]), True, "new keys")
        mark = writer.savepoint()
        _expect(writer.put_new([(b"b", b"1"), (b"e", b"2")]), True, "more new keys")
        _expect(writer.get(b"e"), b"2", "one of these")
        writer.rollback_to(mark)
        expected = [(b"a", b"2"), (b"c", b"old"), (b"d" * 600, b"3"), (b"f", b"1")]
        _expect(_all(writer), expected, "after rolling back")
        writer.release(mark)
        _expect(writer.put_new([(b"x", b"1"), (b"c", b"2"), (b"y", b"3")]), False, "an existing key")
        _expect(_all(writer), [*expected, (b"x", b"1"), (b"y", b"3")], "content")


def scan_while_writing(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """A scan of a write transaction goes on behind its last key when there are writes between batches."""
    for reverse in (False, True):
        with backend.write() as writer:
            writer.put_many(_numbered(100))
            seen: list[bytes] = []
            for keys in writer.scan_keys(b"", None, reverse=reverse, batch_size=10):
                seen += keys
                writer.delete_many(keys)
                if not keys[-1].endswith(b"x"):
                    writer.put(keys[-1] + b"x", b"new")
            originals = [key for key in seen if not key.endswith(b"x")]
            ordered = [key for key, _ in _numbered(100)]
            _expect(originals, ordered[::-1] if reverse else ordered, f"keys seen, reverse={reverse}")


def savepoints(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Savepoints nest; rolling back keeps the savepoint and drops later ones; releasing keeps the writes."""
    _fill(backend, [(b"a", b"0"), (b"b", b"0"), (b"c", b"0")])
    with backend.write() as writer:
        writer.put(b"a", b"1")
        first = writer.savepoint()
        writer.put_many([(b"a", b"2"), (b"d", b"2")])
        writer.delete_many([b"b"])
        second = writer.savepoint()
        writer.delete_range(b"", None)
        writer.insert_many([(b"e", b"3"), (b"f", b"3")])
        writer.rollback_to(second)
        _expect(_all(writer), [(b"a", b"2"), (b"c", b"0"), (b"d", b"2")], "back to the second")
        writer.put(b"g", b"4")
        writer.rollback_to(second)
        _expect(writer.get(b"g"), None, "back to the second again")
        writer.rollback_to(first)
        _expect(_all(writer), [(b"a", b"1"), (b"b", b"0"), (b"c", b"0")], "back to the first")
        _expect_error(StatusCode.MISUSE, lambda: writer.rollback_to(second), "a savepoint that is gone")
        third = writer.savepoint()
        writer.put(b"h", b"5")
        writer.release(third)
        _expect(writer.get(b"h"), b"5", "released")
        writer.rollback_to(first)
        _expect(writer.get(b"h"), None, "an outer savepoint undoes what an inner one released")
        writer.put(b"i", b"6")
        writer.release(first)
        writer.commit()
    with backend.read() as reader:
        _expect(_all(reader), [(b"a", b"1"), (b"b", b"0"), (b"c", b"0"), (b"i", b"6")], "committed")


def random_savepoints(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Any sequence of writes and savepoints leaves what a plain dictionary would hold."""
    random = Random(3)
    content: dict[bytes, bytes] = {}
    with backend.write() as writer:
        marks: list[tuple[Any, dict[bytes, bytes]]] = []
        for step in range(300):
            keys = [b"%02d" % random.randrange(40) for _ in range(random.randrange(1, 6))]
            action = random.randrange(7)
            if action == 0:
                marks.append((writer.savepoint(), content.copy()))
            elif action == 1 and marks:
                del marks[random.randrange(len(marks)) + 1 :]
                writer.rollback_to(marks[-1][0])
                content = marks[-1][1].copy()
            elif action == 2 and marks:
                place = random.randrange(len(marks))
                writer.release(marks[place][0])
                del marks[place:]
            else:
                _random_write(writer, content, keys, action, b"%d" % step)
            _expect(_all(writer), sorted(content.items()), f"content after step {step}")


def _random_write(
    writer: WriteTransaction, content: dict[bytes, bytes], keys: list[bytes], action: int, value: bytes
) -> None:
    if action == 3:
        writer.delete_many(keys)
        for key in keys:
            content.pop(key, None)
    elif action == 4:
        lower, upper = min(keys), max(keys)
        writer.delete_range(lower, upper)
        for key in [key for key in content if lower <= key < upper]:
            del content[key]
    elif action == 5:
        _expect(writer.insert(keys[0], value), keys[0] not in content, "insert")
        content.setdefault(keys[0], value)
        expected = next((i for i, key in enumerate(keys) if key in content or key in keys[:i]), None)
        _expect(writer.insert_many([(key, value) for key in keys]), expected, "insert_many")
        content.update((key, value) for key in keys[:expected])
    else:
        writer.put_many([(key, value + key) for key in keys])
        content.update((key, value + key) for key in keys)


def snapshots(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """A snapshot never changes: not by an open write transaction, nor by commits, nor within a scan."""
    _fill(backend, _numbered(100))
    reader = backend.read()
    unfinished = reader.scan(b"", None, batch_size=10)
    begun = list(next(unfinished))
    with backend.write() as writer:
        writer.delete_range(b"", b"k000050")
        writer.put(b"k000099", b"changed")
        writer.put(b"zzz", b"new")
        _expect(reader.get(b"k000000"), b"v0", "during the write transaction")
        writer.commit()
    _expect(begun + list(chain(*unfinished)), _numbered(100), "the scan begun before")
    _expect(_all(reader), _numbered(100), "a scan begun after")
    _expect(reader.get(b"zzz"), None, "a key that was added")
    reader.close()
    with backend.read() as later:
        _expect(later.get(b"zzz"), b"new", "a later snapshot")
        _expect(later.count(b"", None), 51, "keys in a later snapshot")


def abort_leaves_nothing(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """abort, and leaving the block without commit, leave the last commit as it was; both may be repeated."""
    _fill(backend, [(b"a", b"1")])
    writer = backend.write()
    writer.put(b"a", b"2")
    writer.put(b"b", b"2")
    writer.abort()
    writer.abort()
    with backend.write() as second:
        second.delete(b"a")
    with backend.read() as reader:
        _expect(_all(reader), [(b"a", b"1")], "content")


def use_after_end(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """An ended transaction refuses use with MISUSE; a closed database too."""
    reader = backend.read()
    reader.close()
    reader.close()
    _expect_error(StatusCode.MISUSE, lambda: reader.get(b"a"), "get of a closed snapshot")
    _expect_error(StatusCode.MISUSE, lambda: _all(reader), "scan of a closed snapshot")
    writer = backend.write()
    writer.put(b"a", b"1")
    writer.commit()
    _expect_error(StatusCode.MISUSE, lambda: writer.put(b"b", b"1"), "put after commit")
    _expect_error(StatusCode.MISUSE, writer.commit, "commit after commit")
    writer.abort()
    backend.close()
    backend.close()
    _expect_error(StatusCode.MISUSE, backend.read, "read of a closed database")
    _expect_error(StatusCode.MISUSE, lambda: backend.write(0.0), "write to a closed database")


def single_writer(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """A second writer gets BUSY after its timeout, and its turn when the first one ends."""
    writer = backend.write()
    _expect_error(StatusCode.BUSY, lambda: backend.write(0.0), "a second writer in the same thread")
    codes: list[object] = []

    def try_to_write() -> None:
        try:
            backend.write(0.01).abort()
            codes.append(None)
        except Error as error:
            codes.append(error.code)

    _in_thread(try_to_write)
    writer.abort()
    _in_thread(try_to_write)
    _expect(codes, [StatusCode.BUSY, None], "a writer in another thread, during and after")
    with backend.write() as again:
        again.put(b"a", b"1")
        again.commit()


def readers_do_not_wait(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Snapshots can be taken and read in other threads while a write transaction is open."""
    _fill(backend, [(b"a", b"1")])
    found: list[bytes | None] = []

    def read() -> None:
        with backend.read() as reader:
            found.append(reader.get(b"a"))

    with backend.write() as writer:
        writer.put(b"a", b"2")
        _in_thread(read)
        writer.commit()
    _in_thread(read)
    _expect(found, [b"1", b"2"], "what the other thread read")


def _in_thread(action: Callable[[], None]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def abandoned_scans(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Scans that are dropped halfway, by break, error or garbage collection, hold nothing."""
    _fill(backend, _numbered(2000))

    def drop(transaction: ReadTransaction, number: int) -> Iterator[object]:
        batches = transaction.scan(b"", None, reverse=bool(number % 2), batch_size=5)
        yield next(batches)

    for number in range(300):
        with backend.read() as reader:
            for _ in drop(reader, number):
                break
    with backend.write() as writer:
        for number in range(300):
            for _ in drop(writer, number):
                break
            writer.put(b"n%d" % number, b"")
        writer.commit()
    forgotten = [backend.read() for _ in range(100)]
    del forgotten
    gc.collect()
    with backend.read() as reader:
        _expect(reader.count(b"n", b"o"), 300, "writes between abandoned scans")


def long_keys(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Keys of any length, with long common prefixes, work exactly: order, bounds, savepoints, deletion."""
    lengths = (1, 499, 500, 501, 502, 510, 511, 512, 513, 1000, 5000)
    keys = {bytes((byte,)) * length for byte in (0, 97, 255) for length in lengths}
    keys |= {b"a" * 600 + bytes((byte,)) + tail for byte in (0, 1, 97, 98, 255) for tail in (b"", b"z" * 700)}
    keys |= {b"a" * 500 + b"\0", b"a" * 500 + b"\0\0", b"a" * 499 + b"b", b"a" * 500 + b"b"}
    items = [(key, b"%d" % len(key)) for key in sorted(keys)]
    shuffled = items.copy()
    Random(4).shuffle(shuffled)
    _fill(backend, shuffled[: len(items) // 2])
    with backend.write() as writer:
        for key, value in shuffled[len(items) // 2 :]:
            writer.put(key, value)
        mark = writer.savepoint()
        writer.delete_range(b"a" * 501, b"b")
        _expect(writer.insert_many([(b"b" * 900, b"1"), (items[0][0], b"1")]), 1, "insert_many")
        writer.rollback_to(mark)
        _expect(_all(writer), items, "after the rollback")
        writer.commit()
    with backend.read() as reader:
        _expect(reader.get_many([key for key, _ in shuffled]), [value for _, value in shuffled], "get_many")
        _expect(reader.get(b"a" * 602), None, "an absent long key")
        for lower in (b"", b"a" * 500, b"a" * 501, b"a" * 600, b"a" * 600 + b"\1", b"a" * 5000):
            for upper in (b"a" * 500 + b"\0", b"a" * 502, b"a" * 600 + b"b", b"b", None):
                inside = [item for item in items if item[0] >= lower and (upper is None or item[0] < upper)]
                _expect_scans(reader, lower, upper, inside, 4)
    with backend.write() as writer:
        writer.delete_many([key for key, _ in shuffled[1:]])
        writer.commit()
    with backend.read() as reader:
        _expect(_all(reader), shuffled[:1], "after deletion")


def large_values(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Values far beyond a page come back whole, beside small ones."""
    items = [
        (b"%d" % size, bytes([size % 251]) * size) for size in (0, 1, 4095, 4096, 4097, 100_000, 3_000_000)
    ]
    _fill(backend, items)
    with backend.read() as reader:
        _expect(dict(_all(reader)) == dict(items), True, "large values come back")


def no_shared_buffers(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """Results are bytes of their own, valid after the transaction has ended."""
    _fill(backend, _numbered(20))
    with backend.read() as reader:
        value = reader.get(b"k000003")
        items = _all(reader)
    with backend.write() as writer:
        writer.put_many([(key, b"overwritten") for key, _ in items])
        writer.commit()
    _expect(type(value), bytes, "type of a value")
    _expect((value, items), (b"v3", _numbered(20)), "results after the end")


def reopening(backend: Backend, open_backend: Opener, folder: Path) -> None:
    """What was committed is there when the database is opened again; what was not is not."""
    _fill(backend, _numbered(100))
    with backend.write() as writer:
        writer.put(b"soft", b"1")
        writer.commit(durable=False)
    writer = backend.write()
    writer.put(b"lost", b"1")
    backend_closed_with_open_writer(backend, writer)
    again = open_backend(folder)
    try:
        with again.read() as reader:
            _expect(_all(reader), [*_numbered(100), (b"soft", b"1")], "content")
    finally:
        again.close()


def backend_closed_with_open_writer(backend: Backend, writer: WriteTransaction) -> None:
    """Close a database under an open transaction, which then refuses use."""
    backend.close()
    _expect_error(StatusCode.MISUSE, lambda: writer.put(b"late", b"1"), "put after the database was closed")
    writer.abort()


CHECKS: tuple[Check, ...] = (
    point_operations,
    get_many_is_positional,
    byte_order,
    bounds,
    batches,
    read_your_writes,
    bulk_writes,
    insert,
    insert_many,
    put_new,
    scan_while_writing,
    savepoints,
    random_savepoints,
    snapshots,
    abort_leaves_nothing,
    use_after_end,
    single_writer,
    readers_do_not_wait,
    abandoned_scans,
    long_keys,
    large_values,
    no_shared_buffers,
    reopening,
)

REOPENING = frozenset((reopening,))
"""Checks that need a database that outlives its object."""
