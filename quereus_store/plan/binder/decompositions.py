"""Decompositions: a logical table that is kept in pieces (view-updates-and-lenses, section 17).

Tags of basis tables advertise that together they hold a logical table: an *anchor* with its key, *members*
that share the key (mandatory ones have a row for every row of the anchor, optional ones may), and
*pivots*, which hold one row for every value (entity, attribute, value).  The body of such a table is a join
of anchor and members, with a scalar subquery for each pivoted column.

Chapter: view-updates-and-lenses, section 17; alter-and-ddl-lifecycle, section 13 (the tags).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.plan.binder.logical_syntax import all_of, equal, select_from
from quereus_store.schema.objects import Catalog, TableSchema, fold
from quereus_store.sql import nodes

PREFIX = "quereus.lens.decomp."
PRIMARY = "primary-storage"
LOGICAL_TUPLE = "logical-tuple"
_FACTS = ("logical", "role", "anchor", "keykind")
_PIVOT = ("entity", "attribute", "value")


@dataclass(frozen=True, slots=True)
class Member:
    """A basis table with its share of a decomposition; columns by folded logical name."""

    id: str
    table: TableSchema
    is_optional: bool
    key: tuple[str, ...]
    columns: Mapping[str, str]
    pivot: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class Decomposition:
    """One advertised decomposition, its anchor first among the members."""

    id: str
    logical: str
    role: str
    key_kind: str
    members: tuple[Member, ...]

    @property
    def anchor(self) -> Member:
        """The member that has every row."""
        return self.members[0]

    def member_of(self, column: str) -> Member | None:
        """The member that holds a logical column as one of its own."""
        folded = fold(column)
        return next((member for member in self.members if folded in member.columns), None)

    def pivot_of(self, column: str) -> Member | None:
        """The pivot that holds a logical column that no other member has."""
        if self.member_of(column) is not None:
            return None
        return next((member for member in self.members if member.pivot is not None), None)


# --- reading the tags ---------------------------------------------------------------------------------------


def decomposition_of(catalog: Catalog, basis: str, table: TableSchema) -> Decomposition | None:
    """The primary storage that the tables of a basis advertise for a logical table; ERROR for a bad one."""
    schema = catalog.schema(basis)
    tables = () if schema is None else tuple(schema.tables.values())
    found: list[Decomposition] = []
    for name in dict.fromkeys(part for each in tables for part in _names(each)):
        facts = _facts(name, tables)
        logical = facts.get("logical")
        if logical is None or fold(logical) not in (fold(table.name), fold(table.qualified_name)):
            continue
        made = _decomposition(name, facts, tables, table)
        if made.role == PRIMARY:
            found.append(made)
    if len(found) > 1:
        raise _invalid(table, f"{len(found)} decompositions claim to be its primary storage")
    return found[0] if found else None


def _tags(table: TableSchema) -> Iterator[tuple[str, str, str]]:
    """The decomposition tags of a table: fact, the rest of the key, value."""
    for key, value in table.tags.items():
        if key.startswith(PREFIX):
            fact, _, rest = key.removeprefix(PREFIX).partition(".")
            yield fact, rest, str(value)


def _names(table: TableSchema) -> Iterator[str]:
    for fact, rest, _ in _tags(table):
        yield rest.rpartition(".")[0] if fact in ("col", "pivot") else rest


def _facts(name: str, tables: Sequence[TableSchema]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for table in tables:
        for fact, rest, value in _tags(table):
            if rest != name or fact not in _FACTS:
                continue
            if facts.setdefault(fact, value) != value:
                raise sql_error(
                    StatusCode.ERROR,
                    f"lens decomposition '{name}' states its '{fact}' fact differently on different tables"
                    f" ('{facts[fact]}' and '{value}')",
                )
    return facts


def _decomposition(
    name: str, facts: Mapping[str, str], tables: Sequence[TableSchema], logical: TableSchema
) -> Decomposition:
    for fact in _FACTS:
        if fact not in facts:
            raise sql_error(
                StatusCode.ERROR,
                f"lens decomposition '{name}' is missing the required '{fact}' fact (tag"
                f" '{PREFIX}{fact}.{name}' on any of its tables)",
            )
    members = [member for table in tables if (member := _member(name, table)) is not None]
    anchor = next((member for member in members if fold(member.id) == fold(facts["anchor"])), None)
    if anchor is None:
        raise _invalid(logical, f"its anchor '{facts['anchor']}' is not one of its members")
    ordered = (anchor, *[member for member in members if member is not anchor])
    made = Decomposition(name, facts["logical"], facts["role"], facts["keykind"], ordered)
    _check(made, logical)
    return made


def _member(name: str, table: TableSchema) -> Member | None:
    own = {fact: value for fact, rest, value in _tags(table) if rest == name}
    columns: dict[str, str] = {}
    pivot: dict[str, str] = {}
    for fact, rest, value in _tags(table):
        decomposition, _, last = rest.rpartition(".")
        if decomposition == name and fact == "col":
            columns[fold(last)] = value
        if decomposition == name and fact == "pivot":
            pivot[last] = value
    if not columns and not pivot and not own.keys() & {"member", "key", "presence"}:
        return None
    key = tuple([part.strip() for part in own.get("key", "").split(",") if part.strip()])
    parts = tuple([pivot.get(part, "") for part in _PIVOT]) if pivot else None
    triple = None if parts is None else (parts[0], parts[1], parts[2])
    optional = own.get("presence", "mandatory") == "optional"
    return Member(own.get("member", table.name), table, optional, key, columns, triple)


def _invalid(table: TableSchema, text: str) -> Error:
    return sql_error(
        StatusCode.ERROR, f"lens: advertisement for logical table '{table.qualified_name}' is invalid: {text}"
    )


def _check(made: Decomposition, logical: TableSchema) -> None:
    """What the tags name exists, and keys are keys."""
    for member in made.members:
        table = member.table
        pivot = member.pivot
        named = [*member.key, *member.columns.values(), *(pivot or ())]
        for name in named:
            if table.column_index(name) is None:
                raise _invalid(logical, f"member '{member.id}' has no column '{name}'")
        if pivot is not None:
            if not _is_key(table, pivot[:2]):
                raise _invalid(logical, f"entity and attribute are no key of pivot '{member.id}'")
            continue
        if len(member.key) != len(made.anchor.key):
            raise _invalid(logical, f"member '{member.id}' has a key of another width than the anchor")
        if not _is_key(table, member.key):
            keys = ", ".join(member.key)
            raise _invalid(logical, f"({keys}) is neither the primary key nor UNIQUE in member '{member.id}'")
    if made.key_kind != LOGICAL_TUPLE:
        for name in made.anchor.key:
            position = made.anchor.table.column_index(name)
            assert position is not None
            if made.anchor.table.columns[position].default is None:
                raise _invalid(logical, f"the surrogate key column '{name}' of the anchor has no DEFAULT")


def _is_key(table: TableSchema, names: Sequence[str]) -> bool:
    wanted = {table.column_index(name) for name in names}
    keys = [{part.column for part in table.primary_key.parts}]
    for unique in table.unique_constraints:
        index = table.index(unique.index)
        if index is None or index.where is None:
            keys.append(set(unique.columns))
    return wanted in keys


# --- the body -----------------------------------------------------------------------------------------------


def decomposed_body(made: Decomposition, logical: TableSchema, basis: str) -> nodes.Query:
    """The query that puts a logical table together; ERROR for a column that no member holds."""
    relation: nodes.Relation = _reference(made.anchor, basis)
    for member in made.members[1:]:
        if member.pivot is not None:
            continue
        kind = nodes.JoinKind.LEFT if member.is_optional else nodes.JoinKind.INNER
        condition = all_of(
            [
                equal(_column(member, own), _column(made.anchor, shared))
                for own, shared in zip(member.key, made.anchor.key, strict=True)
            ]
        )
        relation = nodes.Join(kind, relation, _reference(member, basis), condition)
    items = tuple([_item(made, logical, column.name, basis) for column in logical.columns])
    return nodes.Query(nodes.Select(items, relation))


def _reference(member: Member, basis: str) -> nodes.TableReference:
    alias = None if fold(member.id) == fold(member.table.name) else member.id
    return nodes.TableReference(member.table.name, basis, alias)


def _column(member: Member, name: str) -> nodes.ColumnReference:
    same = fold(member.id) == fold(member.table.name)
    return nodes.ColumnReference(name, member.table.name if same else member.id)


def _item(made: Decomposition, logical: TableSchema, name: str, basis: str) -> nodes.ResultColumn:
    member = made.member_of(name)
    if member is not None:
        column = member.columns[fold(name)]
        return nodes.ResultColumn(_column(member, column), None if column == name else name)
    pivot = made.pivot_of(name)
    if pivot is None or pivot.pivot is None:
        raise sql_error(
            StatusCode.ERROR, f"lens: logical column '{logical.qualified_name}.{name}' has no basis backing"
        )
    entity, attribute, value = pivot.pivot
    where = all_of(
        [
            equal(_column(pivot, entity), _column(made.anchor, made.anchor.key[0])),
            equal(_column(pivot, attribute), nodes.Literal.of(name)),
        ]
    )
    return nodes.ResultColumn(
        nodes.Subquery(select_from(_column(pivot, value), _reference(pivot, basis), where)), name
    )
