"""Iterators over what is told: bounded queues that one reader takes from, by thread or by ``asyncio``.

The writer that commits puts an item into the queue and goes on; it never waits for a reader.  What happens
when the queue is full depends on what is in it:

* **notifications of a watch** are joined with the last one that waits: the reader learns of all that was
  touched, only not by which of the commits.
* **commits** cannot be joined.  The first that finds no place and all that follow, until the reader has made
  room, are dropped, and the reader gets an OperationalError (FULL) at the place where they are missing.

A reader in ``asyncio`` waits for a future of its event loop, which the writer's thread sets through
``call_soon_threadsafe``; there is no thread besides.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from quereus_store.errors import StatusCode, sql_error

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
Join = Callable[[T, T], T]


class _Lost:
    """Stands in a queue where items are missing."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Mailbox(Generic[T]):
    """The queue between the writers and one reader; ``join`` makes one item of two when it is full."""

    def __init__(self, size: int, join: Join[T] | None = None) -> None:
        if not isinstance(size, int) or size < 1:
            raise sql_error(StatusCode.MISUSE, f"a queue holds a number of items from 1, not {size!r}")
        self._size = size
        self._join = join
        self._items: deque[Any] = deque()
        self._filled = threading.Condition()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.closed = False

    def put(self, item: T) -> None:
        """Add an item; nothing happens once it is closed."""
        with self._filled:
            if self.closed:
                return
            items = self._items
            if len(items) < self._size:
                items.append(item)
            elif self._join is not None:
                items[-1] = self._join(items[-1], item)
            else:
                if not isinstance(items[-1], _Lost):
                    items.append(_Lost())
                items[-1].count += 1
            self._wake()

    def close(self) -> None:
        """No more items come; what waits for one learns so."""
        with self._filled:
            self.closed = True
            self._wake()

    def _wake(self) -> None:
        self._filled.notify_all()
        waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            try:
                loop.call_soon_threadsafe(_settle, future)
            except RuntimeError:
                # The loop was closed while its reader waited: nobody is there any more.
                continue

    def take(self, timeout: float | None) -> tuple[bool, T | None]:
        """Whether there was an item, and the item; waits so long, for ever if None, but not once closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._filled:
            while not self._items and not self.closed:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._filled.wait(left)
            return self._pop()

    def take_all(self) -> list[T]:
        """All items that are there; where some are missing, those before the place."""
        found: list[T] = []
        with self._filled:
            while self._items and not (found and isinstance(self._items[0], _Lost)):
                item = self._pop()[1]
                assert item is not None
                found.append(item)
        return found

    async def take_async(self) -> tuple[bool, T | None]:
        """As :meth:`take` without end, within the running event loop."""
        # Who calls this has it loaded; others start a twentieth sooner without it.
        import asyncio

        while True:
            with self._filled:
                if self._items or self.closed:
                    return self._pop()
                loop = asyncio.get_running_loop()
                entry = (loop, loop.create_future())
                self._waiting.append(entry)
            try:
                await entry[1]
            finally:
                with self._filled:
                    if entry in self._waiting:
                        self._waiting.remove(entry)

    def _pop(self) -> tuple[bool, T | None]:
        if not self._items:
            return False, None
        item = self._items.popleft()
        if isinstance(item, _Lost):
            raise sql_error(
                StatusCode.FULL,
                f"the reader was too slow: {item.count} commits did not fit into its queue of {self._size}",
            )
        return True, item


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Stream(Generic[T]):
    """What a subscription is told, one after the other: ``for`` and ``async for`` wait for the next.

    A stream ends when it is closed, when the database is, and where what it watches is altered or dropped;
    what waits in it is still given out.  It is a context manager, for ``with`` and ``async with``; a stream
    that is forgotten closes itself.  For one reader at a time.
    """

    def __init__(self, mailbox: Mailbox[T], unsubscribe: Callable[[], Any]) -> None:
        self._mailbox = mailbox
        self._unsubscribe = unsubscribe

    @property
    def closed(self) -> bool:
        """Whether nothing more will come than what waits already."""
        return self._mailbox.closed

    def get(self, timeout: float | None = None) -> T | None:
        """The next item, waiting ``timeout`` seconds (for ever if None); None if none came, or at the end."""
        return self._mailbox.take(timeout)[1]

    def poll(self) -> list[T]:
        """All items that wait, without waiting."""
        return self._mailbox.take_all()

    def close(self) -> None:
        """Stop; may be repeated, and called from any thread."""
        self._unsubscribe()
        self._mailbox.close()

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> T:
        found, item = self._mailbox.take(None)
        if not found:
            raise StopIteration
        return item  # type: ignore[return-value]

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        found, item = await self._mailbox.take_async()
        if not found:
            raise StopAsyncIteration
        return item  # type: ignore[return-value]

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Stream[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Made only in part where the constructor was refused.
        if hasattr(self, "_unsubscribe"):
            self.close()
