"""What APPLY proves of each logical table, and what it refuses or advises (section 15).

All that is found is told: one error has a line for each.  The same pass finds the advisories, which
:mod:`~quereus_store.plan.lenses.advisories` then weighs against the acknowledgements.

Chapter: view-updates-and-lenses, section 15.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.plan.binder.logical_keys import KeyClass, LogicalKey, logical_keys, strict_keys
from quereus_store.plan.binder.logical_lineage import LogicalLineage, Origin, logical_lineage
from quereus_store.plan.binder.relations import expand_view
from quereus_store.plan.expressions import Column
from quereus_store.plan.lenses.round_trips import RoundTrip, domain_of, round_trip
from quereus_store.schema.expressions import row_references
from quereus_store.schema.manager import tables_of
from quereus_store.schema.objects import (
    ConflictAction,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes
from quereus_store.sql.renderer import canonical_text
from quereus_store.sql.traversal import walk

READ_ONLY = "lens.pk-not-reconstructible"
ACCESS = "quereus.lens.access."
_FAMILIES = {"INTEGER": "numeric", "REAL": "numeric", "BOOLEAN": "numeric", "TEXT": "text", "BLOB": "blob"}
_SETTLED = (ConflictAction.REPLACE, ConflictAction.IGNORE)


class ProofServices(Protocol):
    """What the prover asks of the engine."""

    def evaluate(self, expression: nodes.Expression) -> Any:
        """The value of an expression over constants."""

    def row_count(self, table: TableSchema) -> float:
        """About how many rows a table has."""

    def tolerates_nulls(self, table: TableSchema) -> bool:
        """Whether a table's module declares that it may hold NULLs from before a column was NOT NULL."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An error: its code and its message."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Advisory:
    """Something to know about a logical table; ``facts`` are what its digest is taken of.

    ``columns`` are the names that an acknowledgement may target besides ``constraint``;
    ``named`` is the constraint's own name.
    """

    code: str
    table: str
    message: str
    constraint: str | None = None
    column: str | None = None
    columns: tuple[str, ...] = ()
    named: str | None = None
    facts: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """What the prover says of one table."""

    view: ViewSchema
    errors: tuple[Finding, ...]
    advisories: tuple[Advisory, ...]


def prove(context: BindContext, services: ProofServices, view: ViewSchema) -> Proof:
    """All errors and advisories of one logical table; raises what binding its body raises."""
    assert view.logical is not None
    environment = Environment.of(context)
    lineage = logical_lineage(environment, view)
    prover = _Prover(
        context,
        services,
        view,
        view.logical.table,
        lineage,
        expand_view(environment, view, None).columns,
        logical_keys(context.catalog, view.logical.table, lineage),
    )
    return Proof(view, tuple(prover.errors()), tuple(prover.advisories()))


def is_reconstructible(table: TableSchema, lineage: LogicalLineage, bijective: frozenset[int]) -> bool:
    """Whether the columns of a declared primary key come back from the basis as they were written."""
    return not table.primary_key.declared or all(
        lineage.columns[part.column].origin is Origin.BARE or part.column in bijective
        for part in table.primary_key.parts
    )


@dataclass(frozen=True, slots=True)
class _Prover:
    """One logical table with its compiled body, and what can be said of the two."""

    context: BindContext
    services: ProofServices
    view: ViewSchema
    table: TableSchema
    lineage: LogicalLineage
    outputs: tuple[Column, ...]
    keys: tuple[LogicalKey, ...]

    # --- errors -----------------------------------------------------------------

    def errors(self) -> Iterator[Finding]:
        """What APPLY refuses."""
        for position in range(len(self.table.columns)):
            yield from self._type(position)
            yield from self._nullability(position)
            yield from self._writable(position)
            yield from self._putget(position)
        yield from self._checks()
        yield from self._uniques()
        yield from self._conflict_actions()

    def _name(self, position: int) -> str:
        return f"{self.table.name}.{self.table.columns[position].name}"

    def _type(self, position: int) -> Iterator[Finding]:
        declared, derived = self.table.columns[position].type.name, self.outputs[position].type.name
        families = _FAMILIES.get(declared.upper()), _FAMILIES.get(derived.upper())
        if None not in families and families[0] != families[1]:
            yield Finding(
                "lens.type-mismatch",
                f"logical column '{self._name(position)}' declares type '{declared}' but its basis-derived"
                f" expression has type '{derived}' (the two are of different families)",
            )

    def _is_too_nullable(self, position: int) -> bool:
        column = self.table.columns[position]
        return not column.nullable and column.default is None and self.outputs[position].nullable

    def _tolerated(self) -> bool:
        tables = self._basis_tables()
        return bool(tables) and all(map(self.services.tolerates_nulls, tables))

    def _nullability(self, position: int) -> Iterator[Finding]:
        if self._is_too_nullable(position) and not self._tolerated():
            yield Finding(
                "lens.nullability-mismatch",
                f"logical column '{self._name(position)}' is declared NOT NULL but its basis-derived"
                " expression is nullable (declare it NULL, give it a DEFAULT, or make the basis NOT NULL)",
            )

    def _writable(self, position: int) -> Iterator[Finding]:
        wanted = self.table.columns[position].tags.get("quereus.lens.writable")
        if wanted is True and self.lineage.columns[position].origin is Origin.COMPUTED:
            yield Finding(
                "lens.non-invertible",
                f"column '{self._name(position)}' is declared writable ('quereus.lens.writable' = true) but"
                " its mapping is computed and has no inverse",
            )

    def round_trip(self, position: int) -> RoundTrip:
        """What is known of an authored column of a body over one table."""
        origin = self.lineage.columns[position]
        if origin.origin is not Origin.AUTHORED or self.lineage.table is None:
            return RoundTrip(None, False)
        name = self.table.columns[position].name
        return round_trip(self.table, name, origin, self.lineage.table, self.services.evaluate)

    def _putget(self, position: int) -> Iterator[Finding]:
        violation = self.round_trip(position).violation
        if violation is not None:
            written, read = violation
            yield Finding(
                "lens.putget-violation",
                f"authored inverse on '{self._name(position)}' violates PutGet — writing '{written}' stores a"
                f" basis image that reads back as '{read}'; the inverse must return what was written",
            )

    def _checks(self) -> Iterator[Finding]:
        for check in self.table.checks:
            for reference in row_references(check.expression):
                position = self.table.column_index(reference.column)
                if position is not None and not self._can_be_checked(position):
                    name = self.table.columns[position].name
                    yield Finding(
                        "lens.unrealizable-constraint",
                        f"check on '{self.table.name}' references column '{name}', which has computed lineage"
                        " (no write path); the constraint cannot be enforced",
                    )
                    break

    def _can_be_checked(self, position: int) -> bool:
        origin = self.lineage.columns[position]
        if origin.origin is not Origin.AUTHORED:
            return origin.origin is Origin.BARE
        expression = origin.expression
        return expression is not None and not any(isinstance(part, nodes.Query) for part in walk(expression))

    def _uniques(self) -> Iterator[Finding]:
        for unique in self.table.unique_constraints:
            for position in unique.columns:
                origin = self.lineage.columns[position].origin
                if origin is Origin.BARE or self.round_trip(position).bijective:
                    continue
                name = self.table.columns[position].name
                yield Finding(
                    "lens.unrealizable-constraint",
                    f"unique on '{self.table.name}' references column '{name}', which has no write path to"
                    " the basis; the constraint cannot be enforced",
                )
                break

    def _conflict_actions(self) -> Iterator[Finding]:
        for key in self.keys:
            if key.conflict not in _SETTLED:
                continue
            if key.kind is not KeyClass.COMMIT_TIME and key.action is key.conflict:
                continue
            names = ", ".join(f"'{self.table.columns[column].name}'" for column in key.columns)
            why = (
                "it is only checked at commit, when there is no row to skip or replace"
                if key.kind is KeyClass.COMMIT_TIME
                else "the basis key that keeps it acts otherwise"
            )
            yield Finding(
                "lens.unenforceable-conflict-action",
                f"{key.label} on '{self.table.name}' ({names}) declares 'on conflict {key.conflict.value}',"
                f" but {why}",
            )

    # --- advisories -------------------------------------------------------------

    def advisories(self) -> Iterator[Advisory]:
        """What APPLY advises."""
        bijective = frozenset(
            position for position in range(len(self.table.columns)) if self.round_trip(position).bijective
        )
        if not is_reconstructible(self.table, self.lineage, bijective):
            yield self._advise(
                READ_ONLY,
                f"the primary key of '{self.table.name}' is not reconstructible from the basis; the logical"
                " table is read-only",
            )
        for key in self.keys:
            yield from self._key(key)
        for position in range(len(self.table.columns)):
            yield from self._column(position, position in bijective)
        yield from self._partial()
        yield from self._access()

    def _basis_tables(self) -> list[TableSchema]:
        """The tables of the basis that the body names."""
        assert self.view.logical is not None
        named = {
            (fold(part.schema or ""), fold(part.name))
            for part in walk(self.view.query)
            if isinstance(part, nodes.TableReference)
        }
        return [
            table
            for table in tables_of(self.context.catalog)
            if (fold(table.schema), fold(table.name)) in named
        ]

    def _advise(self, code: str, message: str, *facts: Any, **site: Any) -> Advisory:
        tables = self._basis_tables()
        common = (
            code,
            self.table.name,
            [table.qualified_name for table in tables],
            [_band(self.services.row_count(table)) for table in tables],
        )
        return Advisory(code, self.table.name, message, facts=(*common, *facts), **site)

    def _key(self, key: LogicalKey) -> Iterator[Advisory]:
        names = tuple([self.table.columns[column].name for column in key.columns])
        site = {"constraint": key.label, "columns": names, "named": key.constraint}
        shown = ", ".join(names)
        if key.kind is KeyClass.COMMIT_TIME:
            yield self._advise(
                "lens.no-backing-index",
                f"{key.label} on '{self.table.name}' ({shown}) has no basis key or covering structure; it is"
                " checked by a scan at commit",
                names,
                key.covering,
                key.governing,
                **site,
            )
        table = self.lineage.spine
        if key.kind is not KeyClass.PROVED or key.basis is None or table is None:
            return
        for governing, _ in strict_keys(table):
            plain = not any(table.columns[column].nullable for column in governing)
            if plain and set(governing) < set(key.basis):
                held = ", ".join(table.columns[column].name for column in governing)
                yield self._advise(
                    "lens.over-restrictive-basis-key",
                    f"{key.label} on '{self.table.name}' ({shown}) is kept by the narrower basis key ({held})"
                    ", which also refuses rows that the logical key would allow",
                    names,
                    key.covering,
                    governing,
                    **site,
                )
                return

    def _column(self, position: int, bijective: bool) -> Iterator[Advisory]:
        name = self.table.columns[position].name
        origin = self.lineage.columns[position]
        if origin.origin is Origin.AUTHORED and self.lineage.table is not None and not bijective:
            domain = domain_of(self.table, name)
            yield self._advise(
                "lens.getput-lossy",
                f"authored inverse on '{self._name(position)}' is not proven to give back what the basis"
                " holds; writing what was read may change it",
                None if domain is None else [canonical_text(value) for value in domain],
                column=name,
                columns=(name,),
            )
        if self._is_too_nullable(position) and self._tolerated():
            yield self._advise(
                "lens.nullability-mismatch",
                f"logical column '{self._name(position)}' is declared NOT NULL but its basis may hold NULLs"
                " from before",
                column=name,
                columns=(name,),
            )

    def _partial(self) -> Iterator[Advisory]:
        assert self.view.logical is not None
        covered = self.view.logical.overridden
        if covered and len(covered) < len(self.table.columns):
            filled = [column.name for column in self.table.columns if fold(column.name) not in covered]
            yield self._advise(
                "lens.partial-override",
                f"the override of '{self.table.name}' covers some columns only; filled in by name:"
                f" {', '.join(filled)}",
                filled,
            )

    def _access(self) -> Iterator[Advisory]:
        for key in self.table.tags:
            if not key.startswith(ACCESS):
                continue
            wanted = key.removeprefix(ACCESS)
            position = self.table.column_index(wanted)
            if position is None or not self._leads(position):
                yield self._advise(
                    "lens.no-answering-structure",
                    f"'{self.table.name}' wants access by column '{wanted}', but it leads no primary key or"
                    " index of the basis",
                    wanted,
                    column=wanted,
                    columns=(wanted,),
                )

    def _leads(self, position: int) -> bool:
        origin = self.lineage.columns[position]
        if origin.table is None or origin.column is None:
            return False
        keys = [[part.column for part in origin.table.primary_key.parts]]
        keys += [[part.column for part in index.parts] for index in origin.table.indexes]  # type: ignore[misc]
        return any(key and key[0] == origin.column for key in keys)


def _band(rows: float) -> int:
    """The band of a row count: none, below a thousand, below a million, more."""
    return sum(rows >= bound for bound in (1, 1_000, 1_000_000))
