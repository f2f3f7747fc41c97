"""Scopes: what a name means where it stands (queries, section 7).

A scope answers :meth:`Scope.find` for the names of one query level and knows
the level around it.  :func:`resolve` walks outward; the first level that knows a
name decides.  That a name came from an outer level needs no mark: its column
number is one that the inner plan does not produce.

==================  ============================================================
scope               names
==================  ============================================================
``FromScope``       the sources of FROM
``GroupedScope``    the same, after grouping: keys only (module ``grouping``)
``AliasScope``      select aliases in front of another scope
``RowScope``        one row's columns, and ``new.`` / ``old.`` images (row expressions)
==================  ============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Protocol

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.functions.registry import AggregateFunction
from quereus_store.plan.expressions import BoundExpression, Column, Literal, reference
from quereus_store.records import record
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes


class Scope(Protocol):
    """One level of names; ``parent`` is the level around it."""

    @property
    def parent(self) -> Scope | None: ...

    def find(self, name: nodes.ColumnReference) -> BoundExpression | None:
        """What the name means at this level, None if it means nothing; raises ERROR when ambiguous."""
        ...


class KeyedScope:
    """A grouped level: its expression keys are recognised in whatever is bound inside it."""

    __slots__ = ()

    @property
    def has_expression_keys(self) -> bool:
        """Whether :meth:`match` can find anything."""
        raise NotImplementedError

    def match(self, node: nodes.Expression, scope: Scope | None) -> BoundExpression | None:
        """The key that a node is written like, seen from ``scope``."""
        raise NotImplementedError

    def aggregate(self, function: AggregateFunction, node: nodes.FunctionCall) -> BoundExpression:
        """An aggregate over the level's groups, called in a query inside it."""
        raise NotImplementedError


def column_text(name: nodes.ColumnReference) -> str:
    """A column reference as messages print it."""
    return ".".join(part for part in (name.schema, name.table, name.column) if part is not None)


def unknown_column(name: nodes.ColumnReference) -> Error:
    """The error for a name that no scope knows."""
    if name.table is not None:
        return sql_error(StatusCode.ERROR, f"{column_text(name)} isn't a column", name.position)
    return sql_error(StatusCode.ERROR, f"Column not found: {name.column}", name.position)


def ambiguous_column(name: nodes.ColumnReference) -> Error:
    """The error for a name that several sources share."""
    return sql_error(StatusCode.ERROR, f"ambiguous column name: {name.column}", name.position)


def lookup(scope: Scope | None, name: nodes.ColumnReference) -> BoundExpression | None:
    """What a name means, from the innermost level outward; None for an unknown one."""
    level = scope
    while level is not None:
        found = level.find(name)
        if found is not None:
            return found
        level = level.parent
    return None


def as_nullable(column: Column) -> Column:
    """The column as an outer join publishes it."""
    if column.nullable:
        return column
    return Column(column.id, column.name, column.type, True, column.collation)


def names_of(columns: Iterable[Column], position: SourcePosition | None) -> dict[str, Column]:
    """Columns by folded name; raises ERROR for two that differ only in case.

    Texts of expressions, which nobody chose (``length('a')``, ``length('A')``), may: the first is found.
    """
    by_name: dict[str, Column] = {}
    for column in columns:
        first = by_name.setdefault(fold(column.name), column)
        if first is not column and (first.name == column.name or column.name.isidentifier()):
            raise sql_error(
                StatusCode.ERROR, f"Symbol '{fold(column.name)}' already exists in the same scope.", position
            )
    return by_name


class Source:
    """One source of FROM: its qualifier (folded; None if it has none), its schema, its columns."""

    __slots__ = ("by_name", "columns", "name", "schema")

    def __init__(
        self,
        name: str | None,
        columns: tuple[Column, ...],
        schema: str | None = None,
        position: SourcePosition | None = None,
    ) -> None:
        self.name = None if name is None else fold(name)
        self.schema = None if schema is None else fold(schema)
        self.columns = columns
        self.by_name = names_of(columns, position)

    def nullable(self) -> Source:
        """The source on the null-extended side of an outer join."""
        copy = Source.__new__(Source)
        copy.name, copy.schema = self.name, self.schema
        copy.columns = tuple(map(as_nullable, self.columns))
        copy.by_name = {fold(column.name): column for column in copy.columns}
        return copy


class FromScope:
    """The names of a FROM clause.

    ``columns`` are those an unqualified name or ``*`` sees: all of the sources',
    less what USING merged, and the existence flags.
    """

    __slots__ = ("_by_name", "columns", "parent", "sources")

    def __init__(
        self, sources: tuple[Source, ...], columns: tuple[Column, ...], parent: Scope | None
    ) -> None:
        self.sources = sources
        self.columns = columns
        self.parent = parent
        self._by_name: dict[str, Column | None] | None = None

    def find_column(self, name: nodes.ColumnReference) -> Column | None:
        """The column that a name means here."""
        folded = name.column.lower()
        if name.table is not None:
            return self._find_qualified(name, folded)
        by_name = self._by_name
        if by_name is None:
            by_name = self._by_name = self._index()
        found = by_name.get(folded)
        if found is None and folded in by_name:
            raise ambiguous_column(name)
        return found

    def find(self, name: nodes.ColumnReference) -> BoundExpression | None:
        """See :class:`Scope`."""
        column = self.find_column(name)
        return None if column is None else reference(column)

    def source(self, qualifier: str) -> Source | None:
        """The leftmost source under a qualifier."""
        folded = fold(qualifier)
        return next((source for source in self.sources if source.name == folded), None)

    def _index(self) -> dict[str, Column | None]:
        by_name: dict[str, Column | None] = {}
        for column in self.columns:
            folded = column.name.lower()
            by_name[folded] = None if folded in by_name else column
        return by_name

    def _find_qualified(self, name: nodes.ColumnReference, folded: str) -> Column | None:
        qualifier = fold(name.table or "")
        known = False
        for source in self.sources:
            if source.name == qualifier and _schema_fits(name, source):
                found = source.by_name.get(folded)
                if found is not None:
                    return found
                known = True
        if known:
            raise unknown_column(name)
        return None


def _schema_fits(name: nodes.ColumnReference, source: Source) -> bool:
    return name.schema is None or source.schema == fold(name.schema)


class AliasScope:
    """Names that win over those of the scope behind them, where they stand unqualified."""

    __slots__ = ("names", "parent")

    def __init__(self, names: Mapping[str, BoundExpression], behind: Scope | None) -> None:
        self.names = names
        self.parent = behind

    def find(self, name: nodes.ColumnReference) -> BoundExpression | None:
        """See :class:`Scope`."""
        return self.names.get(fold(name.column)) if name.table is None else None


RowImage = Mapping[str, BoundExpression | Error]


@record(frozen=True, slots=True)
class RowScope:
    """The columns of one row of a table, under qualifiers.

    ``images`` maps a folded qualifier (``new``, ``old``, the table's name,
    ``context``; the empty one for bare names) to what its names mean, by folded
    name; an error there is raised when the name is used.  ``refusals`` gives the
    message for a qualifier that may not be used here; ``schema`` lets
    ``schema.table.column`` pass, ``unknown`` makes the error for a name that is none.
    """

    images: Mapping[str, RowImage]
    refusals: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    parent: Scope | None = None
    unknown: Callable[[nodes.ColumnReference], Error] | None = None

    def find(self, name: nodes.ColumnReference) -> BoundExpression | None:
        """See :class:`Scope`."""
        qualifier = "" if name.table is None else fold(name.table)
        refusal = self.refusals.get(qualifier)
        if refusal is not None:
            raise sql_error(StatusCode.ERROR, refusal, name.position)
        if name.schema is not None and (self.schema is None or fold(name.schema) != fold(self.schema)):
            return None
        found = self.images.get(qualifier, _NOTHING).get(fold(name.column))
        if isinstance(found, Error):
            raise sql_error(found.code, found.message, found.position or name.position)
        if found is None and self.unknown is not None and self.parent is None:
            raise self.unknown(name)
        return found


_NOTHING: RowImage = {}


def image_of(columns: Iterable[Column]) -> dict[str, BoundExpression]:
    """A row's columns as names that read them."""
    return {fold(column.name): reference(column) for column in columns}


def null_image(columns: Iterable[Column]) -> dict[str, BoundExpression]:
    """The names of a row that does not exist: every column is NULL."""
    return {fold(column.name): Literal(column.type, True, column.collation, None) for column in columns}
