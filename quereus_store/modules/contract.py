"""The module contract: what the engine asks of whatever stores a table.

A :class:`Module` keeps the rows and indexes of its tables.  It is spoken to in
three ways:

* **planning**: :meth:`Module.plan_access` says how it would serve a set of
  constraints and an ordering (:class:`AccessRequest` → :class:`AccessPlan`);
* **running**: a :class:`Table` is a stateless handle, good for one
  :class:`TableSchema`; every call names the :class:`Transaction` it reads or
  writes in, so one compiled plan serves all connections;
* **transactions**: :meth:`Module.begin_read` pins a snapshot,
  :meth:`Module.begin_write` makes the caller the module's single writer.

Rows are tuples in column order and always travel in batches (lists of about a
thousand, never empty).  A batch handed out must not be changed by anybody afterwards.

Rules that every module keeps (:mod:`quereus_store.modules.conformance` proves them):

* **Order of a key**: NULL is the smallest value, and a descending part reverses the
  whole order of its values, so NULL comes last there.  Rows with equal index parts
  follow in primary-key order.
* **Probes** may be of any class: a key value that the column cannot hold equals
  nothing, but still bounds a range by its place in the order of values.
* **NULL in ranges**: a row whose bounded part is NULL is not in the range; without a
  bound (a walk, or only a prefix) it is.
* **Writes are all or nothing**: a call that raises has changed nothing.
* **A scan is a snapshot**: it gives the rows as they were when it began, whatever the
  same transaction writes meanwhile.
* **Uniqueness**: the primary key compares NULL equal to NULL; a UNIQUE constraint does
  not check a row with a NULL among its parts, nor one outside the predicate of its
  (partial) index.  Every :class:`UniqueConstraint` of the schema is enforced through
  the index that it names, under that index's collations.

Optional abilities are protocols of their own, from :class:`IndexHost` on;
presence is asked with ``isinstance``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.records import record
from quereus_store.schema.objects import Catalog, IndexSchema, LensSnapshot, TableSchema, UniqueConstraint
from quereus_store.sql import nodes
from quereus_store.types.collations import Collation
from quereus_store.types.values import truth

Row = tuple[Any, ...]
Batch = list[Row]
RowFunction = Callable[[Sequence[Row]], list[Any]]


class DdlTransactionality(StrEnum):
    """What a rollback does to schema changes of a module's tables."""

    TRANSACTIONAL = "transactional"
    NON_TRANSACTIONAL = "non-transactional"
    AUTO_COMMIT = "auto-commit"


class Comparison(StrEnum):
    """The constraints that an access path can serve."""

    EQUAL = "="
    IS_NULL = "is null"
    IN = "in"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


@record(frozen=True, slots=True)
class ColumnConstraint:
    """``column op value`` with the collation under which the query compares.

    ``expression`` is given instead of a column (then ``column`` is None) and fits an
    index part of an equal tree.  ``values`` is the number of values of an IN, 1
    otherwise.  All constraints of a request hold at once.  A comparison with a
    TIMESPAN or JSON column is offered only where the other side has that type too.
    ``share`` is the share of the rows that satisfies it (for one of its values), where
    statistics tell.
    """

    column: int | None
    operator: Comparison
    collation: str = "BINARY"
    expression: nodes.Expression | None = None
    values: int = 1
    share: float | None = None


@record(frozen=True, slots=True)
class ColumnOrder:
    """One term of an ordering: a column, its direction, where NULLs go, its collation."""

    column: int
    descending: bool = False
    nulls_last: bool = False
    collation: str = "BINARY"


@record(frozen=True, slots=True)
class AccessRequest:
    """What a query wants of one table; ``implied`` lists the partial indexes whose predicate it implies."""

    constraints: tuple[ColumnConstraint, ...]
    ordering: tuple[ColumnOrder, ...] = ()
    limit: int | None = None
    estimated_rows: int | None = None
    implied: frozenset[str] = frozenset()


class AccessKind(StrEnum):
    """The ways into a table."""

    SCAN = "scan"
    POINT = "point"
    POINTS = "points"
    RANGE = "range"
    RANGES = "ranges"


@record(frozen=True, slots=True)
class AccessPath:
    """A way into a table: which index and how its key is bounded.

    ``index`` is None for the primary key.  POINT and POINTS pin every part of
    the primary key, RANGE pins the first ``equal`` parts and may bound the
    next one; RANGES is RANGE for several prefixes.  POINTS and RANGES have
    exactly one part that an IN pins.  ``lower`` and ``upper`` are ``Comparison``
    members or None.
    """

    kind: AccessKind
    index: str | None = None
    equal: int = 0
    lower: Comparison | None = None
    upper: Comparison | None = None
    reverse: bool = False


@record(frozen=True, slots=True)
class AccessPlan:
    """A module's offer: the path, what each constraint's role in it is, order, cost and rows.

    ``prefix`` holds, per pinned key part, the position of the constraint that
    pins it; ``lower`` and ``upper`` the positions of the bounding constraints.
    A constraint in none of these is left to the engine.  ``ordered`` says that
    the requested ordering is delivered.  Costs count one scanned row as 1.
    """

    path: AccessPath
    prefix: tuple[int, ...] = ()
    lower: int | None = None
    upper: int | None = None
    ordered: bool = False
    at_most_one: bool = False
    cost: float = 0.0
    rows: float = 0.0


STALE_SNAPSHOT = "stale_snapshot"
"""In the details of a BUSY error: the module in which somebody has committed since a snapshot was taken."""


def stale_snapshot(module: str) -> Error:
    """The error for becoming the writer with a snapshot that is not the last state any more."""
    error = sql_error(
        StatusCode.BUSY, "database is locked: another connection has committed since this one read"
    )
    error.details = {STALE_SNAPSHOT: module}
    return error


class UniqueViolation(Exception):
    """A write met an existing row; the engine turns it into the user's error.

    ``constraint`` is None for the primary key, ``row`` the refused row,
    ``existing`` the row in its way.
    """

    def __init__(self, constraint: UniqueConstraint | None, row: Row, existing: Row | None) -> None:
        super().__init__("uniqueness violated")
        self.constraint = constraint
        self.row = row
        self.existing = existing


@record(frozen=True, slots=True)
class Conflict:
    """One existing row that a new row collides with; ``constraint`` is None for the primary key."""

    constraint: UniqueConstraint | None
    existing: Row


class Transaction(Protocol):
    """A module's side of a transaction; a snapshot until it writes.

    Savepoint tokens are ordered: rolling back to one drops the later ones and keeps
    that one; releasing one drops it and the later ones.  A reader takes savepoints
    too (there is nothing to undo).  ``rollback`` of a reader merely releases its
    snapshot and may be repeated; after a writer's ``commit`` or ``rollback`` any use
    is MISUSE.
    """

    writable: bool

    def savepoint(self) -> int: ...
    def rollback_to(self, token: int) -> None: ...
    def release(self, token: int) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


class Table(Protocol):
    """Stateless access to the rows of one :class:`TableSchema`."""

    schema: TableSchema

    def scan(self, transaction: Any, reverse: bool = False) -> Iterator[Batch]:
        """All rows in primary-key order."""
        ...

    def point(self, transaction: Any, key: tuple[Any, ...]) -> Row | None:
        """The row whose primary key has these values (in key order), or None."""
        ...

    def points(self, transaction: Any, keys: Sequence[tuple[Any, ...]]) -> list[Row | None]:
        """Positional :meth:`point` for many keys at once, in any order, repeats allowed."""
        ...

    def range(
        self, transaction: Any, path: AccessPath, prefix: tuple[Any, ...], lower: Any, upper: Any
    ) -> Iterable[Batch]:
        """Rows of a RANGE path in key order; ``lower``/``upper`` count only if the path bounds that side.

        A tuple of batches says that all rows are there and nothing more will be read from the transaction.

        ``lower`` and ``upper`` bound the value, also where the key part is descending.
        No value is NULL except in ``prefix`` where IS NULL pinned it.  With
        neither prefix nor bounds this walks the whole index.
        """
        ...

    def ranges(
        self, transaction: Any, path: AccessPath, prefixes: Sequence[tuple[Any, ...]]
    ) -> list[list[Row]]:
        """For each prefix the rows whose leading key parts equal it (positional)."""
        ...

    def count(self, transaction: Any) -> int:
        """Exact number of rows, without a scan."""
        ...

    def insert(self, transaction: Any, rows: Sequence[Row]) -> None:
        """Add rows. Raises :class:`UniqueViolation` at the first row in the way of a key or UNIQUE."""
        ...

    def delete(self, transaction: Any, rows: Sequence[Row]) -> None:
        """Remove these rows, given as stored."""
        ...

    def update(self, transaction: Any, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Replace each old row by its new one, in order, checking uniqueness row by row."""
        ...

    def conflicts(self, transaction: Any, row: Row, replacing: Row | None = None) -> list[Conflict]:
        """Existing rows that ``row`` would collide with, primary key first, never ``replacing``."""
        ...


@runtime_checkable
class VersionedTable(Protocol):
    """A table whose rows other processes may change: it tells one state from another."""

    def version(self, transaction: Any) -> int:
        """A number that every commit raises which changes the table.

        In a transaction that has changed it, the number that its commit will give it.
        """
        ...


class EngineServices(Protocol):
    """What the engine lends a module, since modules know no SQL."""

    def collation(self, name: str) -> Collation:
        """A registered collation; raises ERROR when unknown."""
        ...

    def row_function(self, table: TableSchema, expression: nodes.Expression) -> RowFunction:
        """Compile an expression over a table's row into a function of a batch.

        The predicate of a partial index goes through :func:`predicate_function`.
        """
        ...


_TRUTH_VALUES = frozenset((bool, type(None)))


def predicate_function(
    services: EngineServices, table: TableSchema, predicate: nodes.Expression
) -> RowFunction:
    """Which rows of a batch a partial index holds: true in Python's sense where the predicate is true.

    A predicate may be any value, and ``'abc'`` or ``'0'`` are not true in SQL.
    """
    values_of = services.row_function(table, predicate)

    def held(rows: Sequence[Row]) -> list[Any]:
        values = values_of(rows)
        return values if set(map(type, values)) <= _TRUTH_VALUES else list(map(truth, values))

    return held


class Module(Protocol):
    """Where tables live.  ``name`` is what USING names."""

    name: str
    persistent: bool
    ddl_transactionality: DdlTransactionality

    def attach(self, services: EngineServices) -> None:
        """Called once, when the module is registered with a database."""
        ...

    def begin_read(self) -> Any:
        """Pin a snapshot of the last committed state."""
        ...

    def begin_write(self, timeout: float, snapshot: Any | None = None, durable: bool = True) -> Any:
        """Become the writer, waiting up to ``timeout`` seconds.

        ``snapshot`` is what the same transaction has read from so far; raises
        BUSY when another writer holds the module, or has committed since that
        snapshot was taken.
        """
        ...

    def table(self, schema: TableSchema) -> Table:
        """The handle for a table; cheap, and cached by the module."""
        ...

    def plan_access(self, schema: TableSchema, request: AccessRequest) -> AccessPlan:
        """The cheapest way to serve a request; :func:`modules.access.plan_access` is the usual one."""
        ...

    def create_table(self, transaction: Any, schema: TableSchema) -> TableSchema:
        """Make storage for a table and its indexes; returns the schema with storage ids filled in."""
        ...

    def drop_table(self, transaction: Any, schema: TableSchema) -> None:
        """Erase a table's rows and indexes."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


REQUIRED = (
    "attach",
    "begin_read",
    "begin_write",
    "table",
    "plan_access",
    "create_table",
    "drop_table",
    "close",
)
"""What every module has to have; a registration without is refused."""


@runtime_checkable
class IndexHost(Protocol):
    """A module whose tables may have indexes that come and go; without it CREATE INDEX is refused."""

    def create_index(self, transaction: Any, schema: TableSchema, index: IndexSchema) -> IndexSchema:
        """Build an index from the rows the transaction sees; ``schema`` is the table without it.

        Returns it with its storage id. Raises :class:`UniqueViolation` (whose constraint
        then bears the index's name) if it is unique and the rows are not.
        """
        ...

    def drop_index(self, transaction: Any, schema: TableSchema, index: IndexSchema) -> None:
        """Erase an index; ``schema`` still holds it."""
        ...


@runtime_checkable
class TableRewriter(Protocol):
    """A module that carries its own tables over to another schema.

    Of any other module ALTER TABLE asks for a new table, which gets the rows of the old one.
    """

    def rewrite_table(
        self,
        transaction: Any,
        old: TableSchema,
        new: TableSchema,
        transform: Callable[[Batch], Batch] | None,
    ) -> TableSchema:
        """Carry a table over to a new schema (columns, key, indexes), passing its rows through ``transform``.

        Returns the schema with storage ids; an index that has one already keeps it.
        Raises :class:`UniqueViolation` when keys collide under the new schema.
        """
        ...


@runtime_checkable
class BackingHost(Protocol):
    """A module whose tables may be maintained tables (seed module-authoring, Backing Host).

    The handle that it gives is asked for what the contract asks of every table, and leaned on: rows in
    key order, found by key and by a beginning of the key without a scan; what a writer has written is
    what it reads; writes of derived rows are admitted even where a user's would be refused.  It belongs to
    one table as it was made: one of the same name that is made after a drop has another.
    :func:`~quereus_store.modules.conformance.run_hosting_conformance` proves a host.
    """

    def get_backing_host(self, schema: TableSchema) -> Table:
        """The handle through which derived rows are written."""
        ...


@runtime_checkable
class DeletesByKey(Protocol):
    """A table that can remove rows without having read them, as long as no index has to be kept up."""

    def delete_keys(self, transaction: Any, keys: Sequence[tuple[Any, ...]]) -> int:
        """Remove the rows of these primary keys from a table without indexes; how many there were."""
        ...


@runtime_checkable
class ColumnsInPlace(Protocol):
    """A module that can let a column come or go without rewriting the rows, which it keeps shorter or longer.

    Of any other module ALTER TABLE asks for ``rewrite_table``.
    """

    def append_column(self, transaction: Any, old: TableSchema, new: TableSchema, value: Any) -> TableSchema:
        """Carry a table over to a schema with one more column at the end, ``value`` in the rows there are."""
        ...

    def retire_column(
        self, transaction: Any, old: TableSchema, new: TableSchema, position: int
    ) -> TableSchema:
        """Carry a table over to a schema without a column, which is no part of the key."""
        ...


@runtime_checkable
class NoteKeeper(Protocol):
    """A module that keeps notes beside a table: small values by name, committed with its rows, gone with it.

    Notes are no rows: nobody reads them but who wrote them, and who finds none works without.
    """

    def read_notes(self, transaction: Any, schema: TableSchema, names: Sequence[bytes]) -> list[bytes | None]:
        """The notes of these names, by position."""
        ...

    def write_notes(
        self,
        transaction: Any,
        schema: TableSchema,
        notes: Sequence[tuple[bytes, bytes | None]],
        *,
        anew: bool,
    ) -> None:
        """Keep these notes, None removes one; ``anew``: and no other."""
        ...


@runtime_checkable
class SchemaBatches(Protocol):
    """A module that wants to know which schema changes belong together (seed schema, Module Batch Hooks).

    APPLY SCHEMA calls the first before its first statement and the second after its last one, if it
    has any; the changes themselves come as always.
    """

    def begin_schema_batch(self, schema_name: str) -> None:
        """The changes of a declared schema follow; an exception calls the whole off."""
        ...

    def end_schema_batch(self, schema_name: str, error: BaseException | None) -> None:
        """They are done; with ``error`` they failed and will be undone.

        An exception of its own is raised if nothing has failed before.
        """
        ...


@runtime_checkable
class ColumnSource(Protocol):
    """A module whose tables all have the same columns, so that CREATE TABLE need not name them."""

    @property
    def definition(self) -> str:
        """A CREATE TABLE with those columns and their constraints."""
        ...


@runtime_checkable
class ChangeCounting(Protocol):
    """A module whose tables other processes may change, and that counts the commits which do."""

    def change_counter(self, transaction: Any, schema: TableSchema) -> tuple[int, bool]:
        """How many commits have changed a table's rows, and whether the transaction will be another one."""
        ...


@runtime_checkable
class LensListener(Protocol):
    """A module that wants to know what logical schemas read (view-updates-and-lenses, section 18)."""

    def notify_lens_deployment(self, schema_name: str, snapshot: tuple[LensSnapshot, ...]) -> None:
        """A logical schema has been deployed; an exception fails APPLY, but the deployment stays."""
        ...


@record(frozen=True, slots=True)
class CatalogProblem:
    """A catalog entry that could not be brought back: its text and why."""

    ddl: str
    error: Exception


@record(frozen=True, slots=True)
class LoadedCatalog:
    """What a persistent module remembers: a catalog of its objects, and what failed."""

    catalog: Catalog
    problems: tuple[CatalogProblem, ...] = ()


@runtime_checkable
class StatisticsSource(Protocol):
    """A module that can say what ANALYZE has found out about its tables."""

    def statistics(self, schema: TableSchema) -> dict[str, Any] | None:
        """The last committed record of a table, or None; it need not be up to date."""
        ...


@runtime_checkable
class PersistentCatalog(Protocol):
    """A module that keeps the database's catalog with its rows."""

    def catalog_version(self, transaction: Any) -> int:
        """A number that changes with every committed schema change of any process; cheap."""
        ...

    def load_catalog(self, transaction: Any) -> LoadedCatalog:
        """Rebuild the catalog that the transaction's snapshot holds."""
        ...

    def save_catalog(self, transaction: Any, before: Catalog, after: Catalog) -> None:
        """Write what differs between two catalogs, inside the transaction."""
        ...
