"""Which maintained table reads which table: the order in which changes travel.

A :class:`Graph` belongs to one catalog.  Its members are the live maintained tables
whose bodies can be bound, each after those it reads, so one walk in order brings a
change through views over views.  Bound bodies are kept from one catalog to the next
as long as nothing they read has changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.engine import Engine
from quereus_store.schema.manager import tables_of
from quereus_store.schema.objects import Catalog, TableSchema
from quereus_store.views.body import Body, TableKey, bind_derivation, key_of
from quereus_store.views.shape import keeps_key, same_shape, seeded


@dataclass(frozen=True, slots=True)
class Member:
    """A live maintained table and its body."""

    table: TableSchema
    body: Body


@dataclass(frozen=True, slots=True)
class Graph:
    """The live maintained tables of one catalog, sources before their readers.

    ``broken`` are those whose bodies cannot be bound although no statement made them stale: a
    function or module that this process lacks.  ``routes`` is for the maintainer to remember in what
    is done about changes of a table.
    """

    members: tuple[Member, ...]
    sources: frozenset[TableKey]
    broken: tuple[tuple[TableSchema, Error], ...] = ()
    by_key: Mapping[TableKey, Member] = field(default_factory=dict)
    routes: dict[object, object] = field(default_factory=dict, compare=False)
    _readers: dict[frozenset[TableKey], tuple[Member, ...]] = field(default_factory=dict, compare=False)

    def readers(self, keys: Iterable[TableKey]) -> tuple[Member, ...]:
        """The members that read any of these tables, directly or through others, in order."""
        asked = frozenset(keys)
        known = self._readers.get(asked)
        if known is None:
            changed = set(asked)
            found = []
            for member in self.members:
                if not changed.isdisjoint(member.body.sources):
                    changed.add(key_of(member.table))
                    found.append(member)
            known = self._readers[asked] = tuple(found)
        return known


class Graphs:
    """The graphs of the catalogs that were looked at last."""

    _KEPT = 8

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._graphs: dict[int, Graph] = {}
        self._bodies: dict[TableKey, tuple[TableSchema, Body]] = {}

    def graph(self, catalog: Catalog) -> Graph:
        """The graph of a catalog."""
        found = self._graphs.get(catalog.version)
        if found is not None:
            return found
        with self._lock:
            found = self._graphs.get(catalog.version)
            if found is None:
                found = self._build(catalog)
                while len(self._graphs) >= self._KEPT:
                    del self._graphs[next(iter(self._graphs))]
                self._graphs[catalog.version] = found
        return found

    def body(self, catalog: Catalog, table: TableSchema) -> Body:
        """The bound body of a maintained table; raises what binding raises."""
        assert table.derivation is not None
        key = key_of(table)
        known = self._bodies.get(key)
        if known is not None and known[0].derivation == table.derivation and known[1].current_in(catalog):
            return known[1]
        body = bind_derivation(self._engine, catalog, table.schema, table.derivation)
        self._bodies[key] = (table, body)
        return body

    def _build(self, catalog: Catalog) -> Graph:
        found: dict[TableKey, Member] = {}
        broken: list[tuple[TableSchema, Error]] = []
        for table in tables_of(catalog):
            if table.derivation is None or table.derivation.stale:
                continue
            try:
                body = self.body(catalog, table)
                check_fit(table, body)
            except Error as error:
                broken.append((table, error))
            else:
                found[key_of(table)] = Member(table, body)
        order = sources_first(found, lambda key: found[key].body.sources if key in found else ())
        members = tuple([found[key] for key in order if key in found])
        sources = frozenset(key for member in members for key in member.body.sources)
        if broken:
            # What they read is not known, so every change may be one of theirs.
            sources |= frozenset(key_of(table) for table in tables_of(catalog))
        return Graph(members, sources, tuple(broken), found)


def check_fit(table: TableSchema, body: Body) -> None:
    """Raise ERROR where stored rows cannot be those of the body: another shape, or no key of it.

    Statements keep that from happening; a function or collation that a program registers otherwise than
    when the table was made does not.
    """
    if not (same_shape(table, body, seeded(table, body)) and keeps_key(table, body)):
        raise sql_error(
            StatusCode.ERROR, f"the body of '{table.qualified_name}' no longer has the shape of its table"
        )


def sources_first(
    keys: Iterable[TableKey], sources: Callable[[TableKey], Iterable[TableKey]]
) -> Iterator[TableKey]:
    """These tables and all that they are made of, each after its sources."""
    done: set[TableKey] = set()

    def visit(key: TableKey) -> Iterator[TableKey]:
        if key in done:
            return
        done.add(key)
        for source in sources(key):
            yield from visit(source)
        yield key

    for key in keys:
        yield from visit(key)
