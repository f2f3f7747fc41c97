"""Keys of memory tables: what a row is sorted by, and where a probe would stand.

A key part's values are turned into *components* that Python compares as the part wants: the
value itself for a NOT NULL INTEGER, ``(True, value)`` against ``(False,)`` where NULL is
possible, a lower-cased text under NOCASE, a negated number in a descending part
(:mod:`quereus_store.types.sortkeys` has the recipes).  Components form keys:

==================  =======================================
primary key         key
==================  =======================================
one part            the component
several parts       the tuple of components
no part             ``()``, so that one row fits
index               ``(key of its parts, primary key)``
==================  =======================================

The code that makes the keys of a batch is generated, one list comprehension a key.

A **bound** of a range is a probe that stands just before or just after all keys with given
leading components.  A prefix tuple sorts before everything it is a prefix of; ``HIGHEST`` as a
further component makes one that sorts after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from quereus_store.errors import StatusCode, sql_error
from quereus_store.modules.contract import AccessPath, Comparison, EngineServices, RowFunction
from quereus_store.modules.memory.chunks import HIGHEST, LOWEST, Key, Position, Row
from quereus_store.modules.memory.sorted_rows import SortedRows
from quereus_store.modules.memory.turning import descending_key
from quereus_store.schema.objects import IndexSchema, TableSchema
from quereus_store.types import logical
from quereus_store.types.collations import Collation
from quereus_store.types.logical import LogicalType
from quereus_store.types.sortkeys import KeyRecipe, number_key, order_key
from quereus_store.types.templates import Template, global_name
from quereus_store.types.values import BLOB_RANK, NUMERIC_RANK, TEXT_RANK, storage_rank

Probe: TypeAlias = tuple[Key, bool]
Component: TypeAlias = Any


_NUMBERS = frozenset((int, bool, float))
_WHOLE = frozenset((int, bool))
_TEXT = frozenset((str,))
_RANKS: dict[LogicalType, tuple[int, frozenset[type]]] = {
    logical.INTEGER: (NUMERIC_RANK, _WHOLE),
    logical.BOOLEAN: (NUMERIC_RANK, _WHOLE),
    logical.TIMESTAMP: (NUMERIC_RANK, _WHOLE),
    logical.REAL: (NUMERIC_RANK, _NUMBERS),
    logical.NUMERIC: (NUMERIC_RANK, _NUMBERS),
    logical.TEXT: (TEXT_RANK, _TEXT),
    logical.DATE: (TEXT_RANK, _TEXT),
    logical.TIME: (TEXT_RANK, _TEXT),
    logical.DATETIME: (TEXT_RANK, _TEXT),
    logical.TIMESPAN: (TEXT_RANK, _TEXT),
    logical.BLOB: (BLOB_RANK, frozenset((bytes,))),
}
"""Per type the storage rank of its values, and the classes that its recipe takes as they are."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a key: where its value comes from and how it compares.

    ``column`` is None for the part that ``expression`` (a function of a batch) computes.
    """

    column: int | None
    type: LogicalType
    nullable: bool
    descending: bool
    collation: Collation
    expression: RowFunction | None = None


class PartKey:
    """The components of one part: source to inline, and probes for values of any class."""

    __slots__ = ("_function", "_rank", "accepted", "null", "part", "template")

    def __init__(self, part: Part) -> None:
        make = descending_key if part.descending else order_key
        recipe = make(part.type, part.nullable, part.collation)
        if part.type is logical.JSON:
            recipe = _of_documents(recipe, part)
        self.part = part
        self.template = recipe.template
        self._function = recipe.function
        self._rank, self.accepted = _RANKS.get(part.type, (0, frozenset()))
        self.null: Component = recipe.apply(None) if part.nullable else LOWEST

    @property
    def is_plain(self) -> bool:
        """Whether a value is its own component."""
        return self._function is None

    def probe(self, value: Any) -> Component:
        """The component that a value of any class would have."""
        if value is None:
            return self.null
        if type(value) in self.accepted or not self.accepted:
            return value if self._function is None else self._convert(value)
        if type(value) is float and self._rank == NUMERIC_RANK:
            number = number_key(value)
            return self._present(-number if self.part.descending else number)
        return self._present(
            HIGHEST if (storage_rank(value) > self._rank) != self.part.descending else LOWEST
        )

    def _convert(self, value: Any) -> Component:
        assert self._function is not None
        try:
            return self._function(value)
        except (TypeError, ValueError, LookupError) as error:
            message = f"cannot compare {value!r} with a key of type {self.part.type}"
            raise sql_error(StatusCode.MISMATCH, message) from error

    def _present(self, component: Component) -> Component:
        return (not self.part.descending, component) if self.part.nullable else component


def _of_documents(recipe: KeyRecipe, part: Part) -> KeyRecipe:
    """An index may give JSON a collation."""
    fold_document = part.collation.folding_documents()
    if fold_document is None:
        return recipe

    def key(document: Any) -> Component:
        return recipe.apply(fold_document(document))

    name = global_name(f"_document_key_{int(part.descending)}{int(part.nullable)}_", part.collation.name)
    return KeyRecipe(key, Template(f"{name}({{0}})", {name: key}))


class KeyOf:
    """The key of a table, or an index's own half of its key: of rows, of probes, of ranges.

    ``nested``: the keys of the tree are ``(own half, primary key)``.
    """

    def __init__(self, parts: Sequence[Part], nested: bool = False) -> None:
        self.parts = tuple(PartKey(part) for part in parts)
        self.nested = nested
        self._expressions = tuple(part.expression for part in parts if part.expression is not None)
        self._nullable = tuple(
            (number, key.null) for number, key in enumerate(self.parts) if key.part.nullable
        )
        self._simple = not nested and len(parts) == 1 and not (parts[0].nullable or parts[0].descending)
        self.rows: Callable[[Sequence[Row]], list[Key]] = self._row_function()
        self.row: Callable[[Row], Key] = self._single_function()
        self.key: Callable[[Sequence[Any]], Key] = self._key_function()
        """The key that values of all parts would have."""

    # --- keys of rows ----------------------------------------------------------------------------------

    def _source(self) -> tuple[str, dict[str, object]]:
        """Source of the key of row ``r`` whose expression values are ``e0``, ``e1``, ..."""
        names: dict[str, object] = {}
        components = []
        computed = 0
        for key in self.parts:
            if key.part.column is not None:
                operand = f"r[{key.part.column}]"
            else:
                operand = f"e{computed}"
                computed += 1
            components.append(key.template.render(operand))
            names.update(key.template.names)
        own = components[0] if len(components) == 1 else f"({', '.join(components)})"
        return own, names

    def _row_function(self) -> Callable[[Sequence[Row]], list[Key]]:
        getter = self._getter()
        if getter is not None:
            return lambda rows: list(map(getter, rows))
        source, names = self._source()
        if not self._expressions:
            batch: Callable[[Sequence[Row]], list[Key]] = eval(
                f"lambda rows: [{source} for r in rows]", names
            )
            return batch
        variables = ", ".join(f"e{number}" for number in range(len(self._expressions)))
        columns = ", ".join(f"_column{number}(rows)" for number in range(len(self._expressions)))
        names.update({f"_column{number}": f for number, f in enumerate(self._expressions)})
        with_values: Callable[[Sequence[Row]], list[Key]] = eval(
            f"lambda rows: [{source} for r, {variables} in zip(rows, {columns})]", names
        )
        return with_values

    def _single_function(self) -> Callable[[Row], Key]:
        getter = self._getter()
        if getter is not None:
            return getter
        if self._expressions:
            rows = self.rows
            return lambda row: rows((row,))[0]
        source, names = self._source()
        function: Callable[[Row], Key] = eval(f"lambda r: {source}", names)
        return function

    def _getter(self) -> Callable[[Row], Key] | None:
        """The key as an ``itemgetter``, where every component is just a column."""
        columns = [key.part.column for key in self.parts if key.is_plain and key.part.column is not None]
        return itemgetter(*columns) if columns and len(columns) == len(self.parts) else None

    def has_null(self, key: Key) -> bool:
        """Whether NULL is among the parts of a key."""
        if len(self.parts) == 1:
            return bool(self._nullable) and bool(key == self._nullable[0][1])
        return any(key[number] == null for number, null in self._nullable)

    def without_nulls(self, keys: list[Key]) -> list[Key]:
        """Those of the keys that hold no NULL."""
        if not self._nullable:
            return keys
        if len(self.parts) == 1:
            null = self._nullable[0][1]
            return [key for key in keys if key != null]
        return [key for key in keys if not self.has_null(key)]

    # --- probes ----------------------------------------------------------------------------------------

    def _key_function(self) -> Callable[[Sequence[Any]], Key]:
        if len(self.parts) == 1:
            part = self.parts[0]
            probe = part.probe
            if part.is_plain and part.accepted:
                accepted = part.accepted
                return lambda values: value if type(value := values[0]) in accepted else probe(value)
            return lambda values: probe(values[0])
        return lambda values: tuple(
            [part.probe(value) for part, value in zip(self.parts, values, strict=True)]
        )

    def _components(self, values: Sequence[Any]) -> tuple[Component, ...]:
        return tuple([part.probe(value) for part, value in zip(self.parts, values, strict=False)])

    def before(self, components: tuple[Component, ...]) -> Probe | None:
        """The probe just before all keys with these leading components; None is the very start."""
        if not components:
            return None
        own = components[0] if len(self.parts) == 1 else components
        return ((own,) if self.nested else own), False

    def behind(self, components: tuple[Component, ...]) -> Probe | None:
        """The probe just after all keys with these leading components; None is the very end."""
        if not components:
            return None
        if len(components) < len(self.parts):
            own: Any = (*components, HIGHEST)
            return ((own,) if self.nested else own), False
        own = components[0] if len(self.parts) == 1 else components
        return ((own, HIGHEST), False) if self.nested else (own, True)

    def span(
        self, tree: SortedRows, path: AccessPath, prefix: Sequence[Any], lower: Any, upper: Any
    ) -> tuple[Position, Position]:
        """Where a RANGE path begins and ends in a tree."""
        if self._simple and path.equal == 0:
            probe = self.parts[0].probe
            return (
                (0, 0)
                if path.lower is None
                else tree.position(probe(lower), path.lower is Comparison.GREATER),
                tree.end()
                if path.upper is None
                else tree.position(probe(upper), path.upper is Comparison.LESS_OR_EQUAL),
            )
        leading = self._components(prefix[: path.equal])
        start, stop = self.before(leading), self.behind(leading)
        if path.lower is not None or path.upper is not None:
            start, stop = self._bounded(path, leading, lower, upper)
        return (
            (0, 0) if start is None else tree.position(*start),
            tree.end() if stop is None else tree.position(*stop),
        )

    def _bounded(
        self, path: AccessPath, leading: tuple[Component, ...], lower: Any, upper: Any
    ) -> tuple[Probe | None, Probe | None]:
        part = self.parts[path.equal]
        descending = part.part.descending
        start, stop = self.before(leading), self.behind(leading)
        if part.part.nullable:
            nulls = (*leading, part.null)
            if descending:
                stop = self.before(nulls)
            else:
                start = self.behind(nulls)
        if path.lower is not None:
            beside = (*leading, part.probe(lower))
            exclusive = path.lower is Comparison.GREATER
            if descending:
                stop = self.before(beside) if exclusive else self.behind(beside)
            else:
                start = self.behind(beside) if exclusive else self.before(beside)
        if path.upper is not None:
            beside = (*leading, part.probe(upper))
            exclusive = path.upper is Comparison.LESS
            if descending:
                start = self.behind(beside) if exclusive else self.before(beside)
            else:
                stop = self.before(beside) if exclusive else self.behind(beside)
        return start, stop


def primary_key_of(schema: TableSchema, services: EngineServices) -> KeyOf:
    """The key maker of a table's primary key."""
    parts = []
    for key_part in schema.primary_key.parts:
        column = schema.columns[key_part.column]
        collation = services.collation(key_part.collation)
        parts.append(Part(key_part.column, column.type, column.nullable, key_part.descending, collation))
    return KeyOf(parts)


def index_key_of(schema: TableSchema, index: IndexSchema, services: EngineServices) -> KeyOf:
    """The key maker of an index's own half."""
    parts = []
    for part in index.parts:
        expression = None
        if part.column is None:
            assert part.expression is not None
            expression = services.row_function(schema, part.expression)
        collation = services.collation(part.collation)
        parts.append(Part(part.column, part.type, part.nullable, part.descending, collation, expression))
    return KeyOf(parts, nested=True)
