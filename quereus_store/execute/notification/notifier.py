"""The notifier: subscriptions to what commits do, and the order in which they are told.

A commit is handed over while it holds the engine's ``publishing`` lock, so the queue stands in commit
order; it is delivered afterwards.  One thread delivers at a time: whoever commits while another thread
delivers, or from within a listener, leaves its batch to that delivery and goes on.  Listeners thus never
run at the same time, see commits one after the other, and may use the database themselves.

A listener that fails is logged (logger ``quereus_store.events``) and nothing else: the commit has
happened, and the other listeners are told.

A transaction that began before a subscription may have changed rows that nobody noted.  When it
commits, watches of that subscription count as touched, and commits are marked as incomplete.

Other processes may write to the same file.  Where the module counts the changes of each table
(:class:`~quereus_store.modules.contract.ChangeCounting`), the notifier compares these counters at each commit
of its own, and when it is asked to; a table that somebody else has changed counts as touched.

Chapters: store-and-modules, section 11; views-and-maintained-tables, section 15.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import threading
import zlib
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.dml.changes import Change
from quereus_store.execute.notification.events import (
    Announcement,
    CatalogChange,
    Commit,
    DataChange,
    Notification,
    Refreshed,
    RowMerge,
    SchemaEvent,
)
from quereus_store.execute.notification.images import Tellers
from quereus_store.execute.notification.matching import NetChanges, TableKey, WatchedTable, matches
from quereus_store.execute.transactions import ReadView
from quereus_store.modules.contract import ChangeCounting
from quereus_store.schema.changes import changes
from quereus_store.schema.manager import MAIN
from quereus_store.schema.objects import Catalog, TableSchema, fold

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine
    from quereus_store.execute.transactions import Transaction

Kind = Literal["data", "schema", "commit", "catalog", "watch", "merge"]

LOGGER = logging.getLogger("quereus_store.events")
_MAX_LISTENERS = 100
_NEEDS_ROWS = frozenset({"data", "commit", "watch"})


@dataclass(eq=False, slots=True)
class Subscription:
    """One listener; ``id`` names it, :meth:`unsubscribe` ends it."""

    id: str
    number: int
    kind: Kind
    listener: Callable[[Any], Any]
    notifier: Notifier = field(repr=False)
    tables: tuple[WatchedTable, ...] = field(default=(), repr=False)
    ended: Callable[[], Any] | None = field(default=None, repr=False)
    active: bool = True

    def unsubscribe(self) -> None:
        """Tell the listener of nothing any more; may be repeated."""
        self.notifier.remove(self)


@dataclass(slots=True)
class _Committed:
    """What a commit hands over."""

    number: int
    began: int
    log: Sequence[Change]
    announced: Sequence[Announcement]
    before: Catalog
    after: Catalog
    wrote: bool
    subscriptions: tuple[Subscription, ...]
    foreign: frozenset[TableKey] = frozenset()

    def knows_all(self, subscription: Subscription) -> bool:
        """Whether the whole transaction was noted for a subscription."""
        return subscription.number <= self.began or not self.wrote


class _Counter:
    """How often a watched table had been changed, by whomever, when this process last looked."""

    __slots__ = ("_module", "_table", "module_name", "value")

    def __init__(self, module: Any, table: TableSchema) -> None:
        self._module = module
        self._table = table
        self.module_name = fold(table.module)
        self.value = 0

    def read(self, transaction: Any) -> tuple[int, bool]:
        """The counter, and whether the transaction will add to it."""
        found: tuple[int, bool] = self._module.change_counter(transaction, self._table)
        return found

    def read_now(self) -> int:
        """The counter of the last commit."""
        transaction = self._module.begin_read()
        try:
            return self.read(transaction)[0]
        finally:
            transaction.rollback()


class _Counted:
    """The counters that a commit leaves, and the tables that another process has changed before it."""

    __slots__ = ("foreign", "values")

    def __init__(self) -> None:
        self.foreign: set[TableKey] = set()
        self.values: dict[TableKey, int] = {}


class Notifier:
    """Tells the listeners of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._gate = threading.Lock()
        self._subscriptions: tuple[Subscription, ...] = ()
        self._all_rows = False
        self._watched: frozenset[TableKey] = frozenset()
        self._pending: deque[_Committed] = deque()
        self._counters: dict[TableKey, _Counter] = {}
        self._tellers = Tellers(engine.collations)
        self._commits = itertools.count(1)
        self._limit = _MAX_LISTENERS
        self.row_merges: Counter[str] = Counter()
        self.active = False
        self.last_number = 0

    # -- subscribing ---------------------------------------------------------------

    def subscribe(
        self,
        kind: Kind,
        listener: Callable[[Any], Any],
        *,
        tables: Sequence[WatchedTable] = (),
        ended: Callable[[], Any] | None = None,
    ) -> Subscription:
        """Add a listener, called from the next commit on; raises MISUSE for what cannot be called plainly."""
        if not callable(listener) or inspect.iscoroutinefunction(listener):
            raise sql_error(
                StatusCode.MISUSE,
                "a listener is a plain function; in asyncio, iterate over the stream with async for",
            )
        with self._lock:
            number = self.last_number + 1
            subscription = Subscription(
                _id(kind, tables, number), number, kind, listener, self, tuple(tables), ended
            )
            self._set((*self._subscriptions, subscription))
            # Last: a transaction that reads this number notes its changes for the subscription.
            self.last_number = number
            self._warn_of_many(kind)
        if tables:
            # Outside of the lock, which a thread that commits may want while it holds ``publishing``.
            try:
                self._count_from_now(tables)
            except BaseException:
                self.remove(subscription)
                raise
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """End a subscription."""
        with self._lock:
            if not subscription.active:
                return
            subscription.active = False
            self._set(tuple([other for other in self._subscriptions if other is not subscription]))
        if subscription.ended is not None:
            subscription.ended()

    def _set(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self.active = bool(subscriptions)
        self._all_rows = any(one.kind in ("data", "commit") for one in subscriptions)
        self._watched = frozenset(table.key for one in subscriptions for table in one.tables)
        for key in [key for key in self._counters if key not in self._watched]:
            self._counters.pop(key, None)
        self._engine.records_changes = any(one.kind in _NEEDS_ROWS for one in subscriptions)

    def set_max_listeners(self, count: int) -> None:
        """From how many listeners of one kind on to warn that some may have been forgotten; 0 for never."""
        if not isinstance(count, int) or count < 0:
            raise sql_error(StatusCode.MISUSE, f"a number of listeners is a number from 0, not {count!r}")
        self._limit = count

    def _warn_of_many(self, kind: Kind) -> None:
        count = sum(one.kind == kind for one in self._subscriptions)
        if kind != "watch" and 0 < self._limit < count:
            LOGGER.warning("%d %s listeners: are some never unsubscribed?", count, kind)

    def forget_schema(self, name: str) -> None:
        """End the watches of tables in a schema that goes."""
        for subscription in self._subscriptions:
            if any(table.key[0] == fold(name) for table in subscription.tables):
                self.remove(subscription)

    def close(self) -> None:
        """End all subscriptions."""
        for subscription in self._subscriptions:
            self.remove(subscription)

    # -- what transactions ask and tell ------------------------------------------------

    def wants(self, table: TableSchema) -> bool:
        """Whether changes of a table's rows are to be noted."""
        if self._all_rows and table.derivation is None:
            return True
        return (fold(table.schema), fold(table.name)) in self._watched

    def before_commit(self, writers: Mapping[str, Any]) -> _Counted | None:
        """Look at the counters of watched tables, which nobody else can change while the writers are open."""
        if not self._counters:
            return None
        counted = _Counted()
        for key, counter in list(self._counters.items()):
            writer = writers.get(counter.module_name)
            if writer is not None:
                base, changes = counter.read(writer)
                if base != counter.value:
                    counted.foreign.add(key)
                counted.values[key] = base + changes
        return counted

    def count_merges(self, announced: Sequence[Announcement]) -> None:
        """Count, for each table, the rows that have taken the place of others in a committed transaction."""
        self.row_merges.update(
            f"{item.schema_name}.{item.table_name}" for item in announced if isinstance(item, RowMerge)
        )

    def hand_over(self, transaction: Transaction, wrote: bool, counted: _Counted | None) -> bool:
        """Take what a transaction did, in the moment of its commit; whether there is anything to tell."""
        foreign = self._settle(counted) if counted is not None else frozenset()
        subscriptions = self._subscriptions
        nothing = (
            not (transaction.changes or transaction.announced or foreign)
            and transaction.catalog is transaction.started_with
            and (transaction.began >= self.last_number or not wrote)
        )
        if nothing or not subscriptions:
            return False
        log, transaction.changes = transaction.changes, []
        self._pending.append(
            _Committed(
                next(self._commits),
                transaction.began,
                log,
                transaction.announced,
                transaction.started_with,
                transaction.catalog,
                wrote,
                subscriptions,
                foreign,
            )
        )
        return True

    # -- what others change ------------------------------------------------------------

    def _count_from_now(self, tables: Sequence[WatchedTable]) -> None:
        with self._engine.publishing:
            for table in tables:
                module = self._engine.module(table.table.module)
                if isinstance(module, ChangeCounting) and table.key not in self._counters:
                    counter = _Counter(module, table.table)
                    counter.value = counter.read_now()
                    self._counters[table.key] = counter

    def _settle(self, counted: _Counted) -> frozenset[TableKey]:
        for key, value in counted.values.items():
            counter = self._counters.get(key)
            if counter is not None:
                counter.value = value
        return frozenset(counted.foreign)

    def look_for_foreign_changes(self) -> bool:
        """Whether another process has changed a watched table since; its watches count as touched then."""
        counted = _Counted()
        # No database is detached meanwhile.
        view = ReadView(self._engine)
        try:
            with self._engine.publishing:
                for key, counter in list(self._counters.items()):
                    value = counter.read_now()
                    if value != counter.value:
                        counted.foreign.add(key)
                    counted.values[key] = value
                foreign = self._settle(counted)
        finally:
            view.release()
        if foreign:
            self._tell_of_foreign(foreign)
        return bool(foreign)

    def external_change(self, schema: str, table: str) -> None:
        """Somebody else has changed a table: its watches count as touched; unknown names mean nothing."""
        self._tell_of_foreign(frozenset({(fold(schema), fold(table))}))

    def _tell_of_foreign(self, foreign: frozenset[TableKey]) -> None:
        catalog = self._engine.current_catalog()
        with self._engine.publishing:
            number, began = next(self._commits), self.last_number
            subscriptions = self._subscriptions
            self._pending.append(
                _Committed(number, began, (), (), catalog, catalog, False, subscriptions, foreign)
            )
        self.deliver()

    def registered(self, kind: str, name: str, before: Any = None, after: Any = None) -> None:
        """Something that belongs to no transaction was registered, replaced or taken back."""
        what = "removed" if after is None else "added" if before is None else "modified"
        change = CatalogChange(f"{kind}_{what}", MAIN, name, before, after)
        for subscription in self._subscriptions:
            if subscription.kind == "catalog":
                _call(subscription, change)

    # -- delivery ------------------------------------------------------------------------

    def deliver(self) -> None:
        """Tell the listeners of all commits that wait, unless somebody does so already."""
        while self._pending:
            if not self._gate.acquire(blocking=False):
                return
            try:
                while self._pending:
                    self._tell(self._pending.popleft())
            finally:
                self._gate.release()

    def _tell(self, committed: _Committed) -> None:
        by_kind: dict[Kind, list[Subscription]] = {}
        for subscription in committed.subscriptions:
            by_kind.setdefault(subscription.kind, []).append(subscription)
        if "catalog" in by_kind:
            _call_each(by_kind["catalog"], _catalog_changes(committed))
        schema_events = [item for item in committed.announced if isinstance(item, SchemaEvent)]
        _call_each(by_kind.get("schema", ()), schema_events)
        if "merge" in by_kind:
            _call_each(by_kind["merge"], [item for item in committed.announced if isinstance(item, RowMerge)])
        data_events: list[DataChange] = []
        if "data" in by_kind or "commit" in by_kind:
            data_events = self._data_events(committed)
            _call_each(by_kind.get("data", ()), data_events)
        for subscription in by_kind.get("commit", ()):
            complete = committed.knows_all(subscription)
            if subscription.active and (schema_events or data_events or not complete):
                _call(
                    subscription,
                    Commit(f"txn:{committed.number}", tuple(schema_events), tuple(data_events), complete),
                )
        self._tell_watchers(committed, by_kind.get("watch", ()))

    def _data_events(self, committed: _Committed) -> list[DataChange]:
        try:
            return list(self._tellers.data_changes(committed.log, committed.announced, committed.after))
        except Exception:
            # A type or collation of the program's own failed over a key; the commit stands all the same.
            LOGGER.exception("the data events of txn:%d cannot be told", committed.number)
            return []

    def _tell_watchers(self, committed: _Committed, watchers: Sequence[Subscription]) -> None:
        net = NetChanges(committed.log)
        for subscription in watchers:
            if not subscription.active:
                continue
            if not all(table.is_current(committed.after) for table in subscription.tables):
                self.remove(subscription)
                continue
            try:
                unknown = committed.foreign if committed.knows_all(subscription) else None
                matched = matches(subscription.tables, net, unknown)
            except Exception:
                LOGGER.exception("what txn:%d touches of %s is unknown", committed.number, subscription.id)
                matched = matches(subscription.tables, net, None)
            if matched:
                _call(subscription, Notification(matched, f"txn:{committed.number}"))


def _id(kind: Kind, tables: Sequence[WatchedTable], number: int) -> str:
    digest = zlib.crc32(repr([table.watch for table in tables]).encode()) & 0xFFFFFF
    return f"{kind}:{digest:06x}:{number}"


def _call_each(subscriptions: Sequence[Subscription], events: Sequence[Any]) -> None:
    for event in events:
        for subscription in subscriptions:
            if subscription.active:
                _call(subscription, event)


def _call(subscription: Subscription, event: Any) -> None:
    try:
        subscription.listener(event)
    except Exception:
        LOGGER.exception("listener %s failed; the commit stands", subscription.id)


def _catalog_changes(committed: _Committed) -> list[CatalogChange]:
    """The net difference of the catalogs, then what was refreshed."""
    found = []
    if committed.before is not committed.after:
        for change in changes(committed.before, committed.after):
            shown = change.object
            found.append(
                CatalogChange(change.type, fold(shown.schema), shown.name, change.before, change.after)
            )
    for item in committed.announced:
        if isinstance(item, Refreshed):
            table = committed.after.table(item.table.schema, item.table.name)
            if table is not None:
                found.append(
                    CatalogChange("materialized_view_refreshed", fold(table.schema), table.name, None, table)
                )
    return found
