"""Change scopes: which rows of which tables a statement's result depends on.

=================  =====================================================================
``Full``           any row of the table
``Rows``           the rows whose key has one of the listed values
``Groups``         any row, told apart by the group that it belongs to
``RowsByGroup``    the rows of the listed groups
=================  =====================================================================

A scope is a value: scopes can be compared, joined and written as JSON.  A value that comes from a parameter
is an :class:`UnboundValue` until :meth:`ChangeScope.bind_parameters` puts the parameter's in its place.

Chapter: views-and-maintained-tables, section 14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from quereus_store.errors import StatusCode, sql_error


@dataclass(frozen=True, slots=True)
class UnboundValue:
    """The value of a parameter: its number from 1, or its name."""

    parameter: int | str
    type_name: str = "ANY"
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Full:
    """Any change of the table."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Changes of the rows with one of these key values; ``key`` names the key's columns."""

    key: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """Any change, told by the group of these columns."""

    group_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowsByGroup:
    """Changes of rows that belong to one of these groups."""

    group_by: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]


TableScope: TypeAlias = Full | Rows | Groups | RowsByGroup
Columns: TypeAlias = tuple[str, ...] | Literal["all"]


@dataclass(frozen=True, slots=True)
class Watch:
    """What matters of one table; all names in lower case.

    ``columns`` tells what is read; a change of other columns counts all the same.
    """

    schema: str
    table: str
    columns: Columns = "all"
    scope: TableScope = Full()


@dataclass(frozen=True, slots=True)
class Source:
    """What a result depends on besides tables; ``name`` is a function's, ``index`` a parameter's."""

    kind: Literal["time", "random", "volatileUdf", "parameter"]
    name: str | None = None
    index: int | str | None = None


@dataclass(frozen=True, slots=True)
class ChangeScope:
    """The change scope of a statement: sorted, with one watch for a table."""

    watches: tuple[Watch, ...] = ()
    non_deterministic_sources: tuple[Source, ...] = ()
    unbound_parameters: tuple[int | str, ...] = ()

    @staticmethod
    def of(watches: Iterable[Watch], sources: Iterable[Source] = ()) -> ChangeScope:
        """Watches and sources, sorted and merged."""
        by_table: dict[tuple[str, str], Watch] = {}
        for watch in watches:
            key = (watch.schema.lower(), watch.table.lower())
            known = by_table.get(key)
            by_table[key] = watch if known is None else _joined(known, watch)
        merged = tuple(by_table[key] for key in sorted(by_table))
        return ChangeScope(merged, tuple(sorted(set(sources), key=_source_order)), _unbound(merged))

    @property
    def is_empty(self) -> bool:
        """Whether no change of any table matters."""
        return not self.watches

    @property
    def describes_everything(self) -> bool:
        """Whether the tables alone decide about the result: no other source, no unbound parameter."""
        return not self.non_deterministic_sources and not self.unbound_parameters

    def union(self, other: ChangeScope) -> ChangeScope:
        """What matters to either; a table with two different keys is watched in full."""
        return ChangeScope.of(
            self.watches + other.watches, self.non_deterministic_sources + other.non_deterministic_sources
        )

    def intersect(self, other: ChangeScope) -> ChangeScope:
        """What matters to both: of tables that both watch, the narrower scope, or the values of both."""
        theirs = {(watch.schema, watch.table): watch for watch in other.watches}
        both = []
        for watch in self.watches:
            found = theirs.get((watch.schema, watch.table))
            met = None if found is None else _met(watch, found)
            if met is not None:
                both.append(met)
        sources = set(self.non_deterministic_sources) & set(other.non_deterministic_sources)
        return ChangeScope.of(both, sources)

    def bind_parameters(self, parameters: Sequence[Any] | Mapping[Any, Any]) -> ChangeScope:
        """The scope with values for its parameters: a list (the first is number 1) or map by number or name.

        Raises RANGE for a parameter that is not given.
        """

        def value(slot: Any) -> Any:
            if not isinstance(slot, UnboundValue):
                return slot
            try:
                if isinstance(parameters, Mapping):
                    return parameters[slot.parameter]
                return parameters[slot.parameter - 1]  # type: ignore[operator]
            except (KeyError, IndexError, TypeError):
                raise sql_error(
                    StatusCode.RANGE, f"no value for parameter {slot.parameter} of the change scope"
                ) from None

        return ChangeScope.of(
            [replace(watch, scope=_mapped(watch.scope, value)) for watch in self.watches],
            self.non_deterministic_sources,
        )

    def as_json(self) -> dict[str, Any]:
        """The scope as a JSON document: values as ``{"v": 3}``, parameters as ``{"p": 1, "t": …}``."""
        return {
            "watches": [_watch_json(watch) for watch in self.watches],
            "nonDeterministicSources": [_source_json(source) for source in self.non_deterministic_sources],
            "unboundParameters": list(self.unbound_parameters),
        }


# --- joining ----------------------------------------------------------------------------------------------


def _joined(left: Watch, right: Watch) -> Watch:
    columns: Columns = "all"
    if left.columns != "all" and right.columns != "all":
        columns = tuple(sorted({*left.columns, *right.columns}))
    return replace(left, columns=columns, scope=_joined_scope(left.scope, right.scope))


def _joined_scope(left: TableScope, right: TableScope) -> TableScope:
    if left == right:
        return left
    if isinstance(left, Rows) and isinstance(right, Rows) and left.key == right.key:
        return Rows(left.key, _distinct(left.values + right.values))
    if isinstance(left, RowsByGroup) and isinstance(right, RowsByGroup) and left.group_by == right.group_by:
        return RowsByGroup(left.group_by, _distinct(left.values + right.values))
    return Full()


def _met(left: Watch, right: Watch) -> Watch | None:
    scope = _met_scope(left.scope, right.scope)
    if scope is None:
        return None
    columns = left.columns
    if columns == "all":
        columns = right.columns
    elif right.columns != "all":
        columns = tuple(sorted({*columns} & {*right.columns}))
    return replace(left, columns=columns, scope=scope)


def _met_scope(left: TableScope, right: TableScope) -> TableScope | None:
    if isinstance(right, Full) or left == right:
        return left
    if isinstance(left, Rows) and isinstance(right, Rows) and left.key == right.key:
        values = tuple(value for value in left.values if value in right.values)
        return Rows(left.key, values) if values else None
    if isinstance(left, RowsByGroup) and isinstance(right, RowsByGroup) and left.group_by == right.group_by:
        values = tuple(value for value in left.values if value in right.values)
        return RowsByGroup(left.group_by, values) if values else None
    # Of two that cannot be compared the left one is never too narrow.
    return right if isinstance(left, Full) else left


def _distinct(values: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
    kept = {repr(value): value for value in values}
    return tuple(kept[name] for name in sorted(kept))


def _mapped(scope: TableScope, value: Callable[[Any], Any]) -> TableScope:
    if isinstance(scope, Rows | RowsByGroup):
        return replace(scope, values=_distinct(tuple(tuple(map(value, row)) for row in scope.values)))
    return scope


def _unbound(watches: Iterable[Watch]) -> tuple[int | str, ...]:
    found = {
        value.parameter
        for watch in watches
        if isinstance(watch.scope, Rows | RowsByGroup)
        for row in watch.scope.values
        for value in row
        if isinstance(value, UnboundValue)
    }
    return tuple(sorted(found, key=lambda name: (isinstance(name, str), name)))


def _source_order(source: Source) -> tuple[str, str, str]:
    return source.kind, source.name or "", str(source.index).rjust(9, "0")


# --- JSON -------------------------------------------------------------------------------------------------


def _watch_json(watch: Watch) -> dict[str, Any]:
    columns = "all" if watch.columns == "all" else list(watch.columns)
    return {
        "table": {"schema": watch.schema, "table": watch.table},
        "columns": columns,
        "scope": _scope_json(watch.scope),
    }


def _scope_json(scope: TableScope) -> dict[str, Any]:
    if isinstance(scope, Rows):
        return {"kind": "rows", "key": list(scope.key), "values": _values_json(scope.values)}
    if isinstance(scope, Groups):
        return {"kind": "groups", "groupBy": list(scope.group_by)}
    if isinstance(scope, RowsByGroup):
        return {
            "kind": "rowsByGroup",
            "groupBy": list(scope.group_by),
            "values": _values_json(scope.values),
        }
    return {"kind": "full"}


def _values_json(values: tuple[tuple[Any, ...], ...]) -> list[list[dict[str, Any]]]:
    return [[_value_json(value) for value in row] for row in values]


def _value_json(value: Any) -> dict[str, Any]:
    if isinstance(value, UnboundValue):
        return {"p": value.parameter, "t": {"typeName": value.type_name, "nullable": value.nullable}}
    return {"v": value}


def _source_json(source: Source) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": source.kind}
    if source.name is not None:
        shown["name"] = source.name
    if source.index is not None:
        shown["index"] = source.index
    return shown
