"""``database.events``: listeners and streams for what commits do.

All listeners are called after the commit, in commit order, one at a time, in the thread that commits (or in
one that is delivering already).  What a listener raises is logged, and changes nothing.

Chapter: store-and-modules, section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from quereus_store.execute.notification import (
    CatalogChange,
    Commit,
    DataChange,
    Match,
    Notification,
    Notifier,
    RowMerge,
    SchemaEvent,
    Stream,
    Subscription,
)
from quereus_store.execute.notification.matching import WatchedTable
from quereus_store.execute.notification.streams import Mailbox

QUEUE_SIZE = 1000
"""How many items a stream holds for its reader."""

Unsubscribe = Callable[[], None]


class Events:
    """Subscriptions to the commits of one database; each ``on_…`` gives a function that ends it."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def on_data_change(self, listener: Callable[[DataChange], Any]) -> Unsubscribe:
        """Call a function for every row that a commit inserted, updated or deleted."""
        return self._notifier.subscribe("data", listener).unsubscribe

    def on_schema_change(self, listener: Callable[[SchemaEvent], Any]) -> Unsubscribe:
        """Call a function for every CREATE, ALTER and DROP of tables and indexes, before the data events."""
        return self._notifier.subscribe("schema", listener).unsubscribe

    def on_transaction_commit(self, listener: Callable[[Commit], Any]) -> Unsubscribe:
        """Call a function once for each commit that has events, with all of them."""
        return self._notifier.subscribe("commit", listener).unsubscribe

    def on_catalog_change(self, listener: Callable[[CatalogChange], Any]) -> Unsubscribe:
        """Call a function for each catalog object that a commit left different, views and assertions too.

        It is told of registered functions, modules and collations besides, when they are registered.
        """
        return self._notifier.subscribe("catalog", listener).unsubscribe

    def on_row_merge(self, listener: Callable[[RowMerge], Any]) -> Unsubscribe:
        """Call a function for each derived row that has taken another's place under a coarser key."""
        return self._notifier.subscribe("merge", listener).unsubscribe

    @property
    def row_merges(self) -> Mapping[str, int]:
        """How often that has happened since the database was opened, by ``schema.table``; no entry: never."""
        return dict(self._notifier.row_merges)

    def stream(self, *, queue_size: int = QUEUE_SIZE) -> Stream[Commit]:
        """The commits from now on, to be iterated over with ``for`` or ``async for``.

        A reader that lags behind by more than ``queue_size`` commits gets an OperationalError (FULL) at the
        place where some are missing, and goes on after it.
        """
        mailbox: Mailbox[Commit] = Mailbox(queue_size)
        subscription = self._notifier.subscribe("commit", mailbox.put, ended=mailbox.close)
        return Stream(mailbox, subscription.unsubscribe)

    def set_max_listeners(self, count: int) -> None:
        """Warn in the log when there are more listeners of one kind than this (100 at first; 0: never)."""
        self._notifier.set_max_listeners(count)


def watch_with(
    notifier: Notifier, tables: Sequence[WatchedTable], handler: Callable[[Notification], Any]
) -> Subscription:
    """The callback form of ``Database.watch``."""
    return notifier.subscribe("watch", handler, tables=tables)


def watch_stream(notifier: Notifier, tables: Sequence[WatchedTable], queue_size: int) -> Stream[Notification]:
    """The iterator form of ``Database.watch``."""
    mailbox: Mailbox[Notification] = Mailbox(queue_size, join_notifications)
    subscription = notifier.subscribe("watch", mailbox.put, tables=tables, ended=mailbox.close)
    return Stream(mailbox, subscription.unsubscribe)


def join_notifications(earlier: Notification, later: Notification) -> Notification:
    """One notification of all that two touch."""
    hits = {match.watch: {repr(hit): hit for hit in match.hits} for match in earlier.matched}
    for match in later.matched:
        hits.setdefault(match.watch, {}).update((repr(hit), hit) for hit in match.hits)
    matched = tuple(Match(watch, tuple(found.values())) for watch, found in hits.items())
    return replace(later, matched=matched, commits=earlier.commits + later.commits)
