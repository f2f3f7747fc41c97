"""Streams: notifications and commits to iterate over, in threads and in asyncio."""

import asyncio
import gc
import threading

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.errors import InterfaceError, OperationalError
from quereus_store.events import ChangeScope, Groups, Watch


def test_waiting_items_are_polled_in_commit_order(con: Connection) -> None:
    with con.database.events.stream() as stream:
        con.execute("insert into tank values (1, 'north', 1)")
        con.execute("delete from tank")
        assert [commit.data_events[0].type for commit in stream.poll()] == ["insert", "delete"]
        assert stream.poll() == []
        assert stream.get(timeout=0) is None


def test_a_thread_waits_for_the_next(con: Connection) -> None:
    stream = con.database.watch("select * from tank")
    found: list[str] = []

    def read() -> None:
        found.extend(match.watch.table for notification in stream for match in notification.matched)

    reader = threading.Thread(target=read)
    reader.start()
    con.execute("insert into tank values (1, 'north', 1)")
    stream.close()
    reader.join(10)
    assert (reader.is_alive(), found) == (False, ["tank"])


def test_a_slow_watcher_gets_one_notification_of_all(con: Connection) -> None:
    scope = ChangeScope.of([Watch("main", "tank", scope=Groups(("name",)))])
    stream = con.database.watch(scope, queue_size=2)
    for number in range(5):
        con.execute("insert into tank values (?, ?, 1)", (number, f"n{number}"))
    first, second = stream.poll()
    assert (first.commits, second.commits) == (1, 4)
    assert sorted(hit for match in second.matched for hit in match.hits) == [
        ("n1",),
        ("n2",),
        ("n3",),
        ("n4",),
    ]


def test_a_slow_reader_of_commits_learns_where_some_are_missing(con: Connection) -> None:
    stream = con.database.events.stream(queue_size=2)
    for number in range(5):
        con.execute("insert into tank values (?, 'x', 1)", (number,))
    assert [commit.data_events[0].key for commit in stream.poll()] == [(0,), (1,)]
    with pytest.raises(OperationalError, match="3 commits did not fit into its queue of 2"):
        stream.poll()
    con.execute("insert into tank values (9, 'x', 1)")
    assert [commit.data_events[0].key for commit in stream.poll()] == [(9,)]


def test_a_queue_has_a_size(con: Connection) -> None:
    with pytest.raises(InterfaceError, match="a queue holds"):
        con.database.watch("select * from tank", queue_size=0)
    assert not con.database.engine.notifier.active


def test_a_stream_ends_when_its_table_is_altered(con: Connection) -> None:
    stream = con.database.watch("select * from tank")
    con.execute("insert into tank values (1, 'north', 1)")
    con.execute("alter table tank add column depth integer null")
    assert len(list(stream)) == 1
    assert stream.closed


def test_a_stream_ends_with_its_database(con: Connection) -> None:
    stream = con.database.events.stream()
    con.close()
    assert list(stream) == []


def test_a_forgotten_stream_is_no_burden(con: Connection) -> None:
    stream = con.database.watch("select * from tank")
    assert con.database.engine.records_changes
    del stream
    gc.collect()
    assert not con.database.engine.records_changes


def test_asyncio_reads_what_other_threads_commit(con: Connection) -> None:
    threads = threading.active_count()

    async def dashboard() -> list[int]:
        counts: list[int] = []
        async with con.database.watch("select count(*) from tank") as changes:
            writer = asyncio.get_running_loop().run_in_executor(
                None, con.execute, "insert into tank values (1, 'north', 1)"
            )
            async for notification in changes:
                counts.append(notification.commits)
                break
            await writer
            assert threading.active_count() == threads + 1  # the executor's
        return counts

    assert asyncio.run(dashboard()) == [1]
    assert threading.active_count() == threads
    assert not con.database.engine.records_changes


def test_asyncio_writer_and_reader_in_one_loop(con: Connection) -> None:
    async def both() -> list[str]:
        found: list[str] = []

        async def reader() -> None:
            async for commit in stream:
                found.extend(event.type for event in commit.data_events)

        stream = con.database.events.stream()
        task = asyncio.create_task(reader())
        con.execute("insert into tank values (1, 'north', 1)")
        await asyncio.sleep(0)
        con.execute("delete from tank")
        stream.close()
        await asyncio.wait_for(task, 10)
        return found

    assert asyncio.run(both()) == ["insert", "delete"]


def test_a_cancelled_reader_loses_nothing(con: Connection) -> None:
    async def cancelled() -> int:
        stream = con.database.events.stream()
        waiting = asyncio.create_task(stream.__anext__())
        await asyncio.sleep(0)
        waiting.cancel()
        con.execute("insert into tank values (1, 'north', 1)")
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return len(stream.poll())

    assert asyncio.run(cancelled()) == 1


def test_a_loop_that_is_gone_does_not_trouble_the_writer() -> None:
    con = quereus_store.connect(":memory:")
    con.execute("create table tank (id integer primary key)")
    stream = con.database.events.stream()
    loop = asyncio.new_event_loop()
    task = loop.create_task(stream.__anext__())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    con.execute("insert into tank values (1)")
    assert len(stream.poll()) == 1
    task._log_destroy_pending = False  # type: ignore[attr-defined]
