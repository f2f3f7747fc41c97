"""Writing through a decomposed logical table: what differs from any other join (section 17).

Members share the anchor's key, so every one of them is reached from the captured rows by it.  A DELETE takes
the rows of all members, the anchor's last; an optional member whose columns have all become null goes too.
A pivoted column is a row of its own: it is written anew where its value is not null.

Chapter: view-updates-and-lenses, section 17.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quereus_store.errors import Error, SourcePosition
from quereus_store.plan.binder.decompositions import LOGICAL_TUPLE, Decomposition, Member
from quereus_store.plan.binder.join_rows import (
    TARGET,
    CapturedRows,
    JoinStatement,
    captured,
    captured_relation,
    side_column,
    table_reference,
)
from quereus_store.plan.binder.logical_syntax import all_of, equal
from quereus_store.plan.binder.view_bodies import coded
from quereus_store.plan.binder.view_joins import JoinView
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes, traversal

ANCHOR = 0
"""The anchor's side."""


def check_decomposed(statement: JoinStatement, made: Decomposition, node: nodes.DataModification) -> None:
    """Raise ERROR for what a decomposed table does not do."""
    view = statement.view
    if node.returning:
        text = f"RETURNING through logical table '{view.name}' is not yet supported"
        raise coded("returning-through-view", text, node.position)
    if len(made.anchor.key) > 1:
        keys = ", ".join(made.anchor.key)
        text = (
            f"cannot write through logical table '{view.name}': its decomposition shares a composite key"
            f" ({keys}); only a single key column can be written"
        )
        raise coded("unsupported-decomposition-key", text, node.position)
    if not isinstance(node, nodes.Insert) and node.where is not None:
        _check_predicate(view, node.where)
    if isinstance(node, nodes.Update):
        for assignment in node.assignments:
            for name in _targets(assignment):
                _check_not_key(view, made, name, assignment.position)


def _targets(assignment: nodes.Assignment | nodes.MultiAssignment) -> tuple[str, ...]:
    return assignment.columns if isinstance(assignment, nodes.MultiAssignment) else (assignment.column,)


def _check_predicate(view: JoinView, where: nodes.Expression) -> None:
    for part in traversal.walk(where):
        if isinstance(part, nodes.Query):
            raise _predicate(view, "the WHERE embeds a subquery; name anchor columns only", part)
    for part in traversal.walk(where):
        output = view.output(part.column) if isinstance(part, nodes.ColumnReference) else None
        if output is not None and output.sides != {ANCHOR}:
            text = (
                f"the WHERE references column '{output.name}', backed by a non-anchor decomposition member;"
                " name anchor columns only"
            )
            raise _predicate(view, text, part)


def _predicate(view: JoinView, text: str, node: nodes.Node) -> Error:
    message = f"cannot write through logical table '{view.name}': {text}"
    return coded("unsupported-decomposition-predicate", message, node.position)


def _check_not_key(view: JoinView, made: Decomposition, name: str, position: SourcePosition | None) -> None:
    member = made.member_of(name)
    if member is not None and fold(member.columns[fold(name)]) in map(fold, member.key):
        text = (
            f"cannot update logical table '{view.name}': column '{name}' is part of the decomposition shared"
            " key; delete the row and insert it anew"
        )
        raise coded("unsupported-decomposition-update", text, position)


def check_own_member(view: JoinView, made: Decomposition, side: int, assignment: nodes.Assignment) -> None:
    """A value of a mandatory member may read its own member only."""
    for part in traversal.walk(assignment.value):
        output = view.output(part.column) if isinstance(part, nodes.ColumnReference) else None
        if output is None or output.sides == {side}:
            continue
        holder = made.member_of(output.name) or made.pivot_of(output.name)
        text = (
            f"cannot update logical table '{view.name}': an update value references column '{output.name}' on"
            f" decomposition member '{'' if holder is None else holder.id}', which is not the one that is"
            " assigned"
        )
        raise coded("cross-source-assignment", text, part.position)


def check_key_supplied(
    view: JoinView, made: Decomposition, names: Sequence[str], position: SourcePosition | None
) -> None:
    """A key that is part of the logical row must come with it."""
    if made.key_kind != LOGICAL_TUPLE:
        return
    for key in made.anchor.key:
        shown = {
            name for member in made.members for name, own in member.columns.items() if _is_key(member, own)
        }
        if shown & set(map(fold, names)):
            continue
        text = (
            f"cannot insert into logical table '{view.name}': the logical-tuple shared key (anchor"
            f" '{made.anchor.id}' column '{key}') is not supplied; supply it"
        )
        raise coded("no-default", text, position)


def _is_key(member: Member, column: str) -> bool:
    return fold(column) in map(fold, member.key)


# --- mutations of members -----------------------------------------------------------------------------------


def anchor_key(made: Decomposition) -> str:
    """The captured column that holds the anchor's key."""
    position = made.anchor.table.column_index(made.anchor.key[0])
    assert position is not None
    return side_column(ANCHOR, position)


def delete_empty(rows: CapturedRows, made: Decomposition, side: int) -> None:
    """Remove the captured rows of an optional member all of whose columns are null."""
    table = rows.statement.view.sides[side].table
    member = next(member for member in made.members if member.table is table)
    empty = [
        nodes.IsTest(nodes.ColumnReference(own, TARGET), nodes.IsTarget.NULL)
        for own in member.columns.values()
        if not _is_key(member, own)
    ]
    same = equal(nodes.ColumnReference(member.key[0], TARGET), captured(anchor_key(made)))
    target = table_reference(table, TARGET)
    rows.add(nodes.Delete(target, captured_relation(), all_of([same, *empty])), None)


def write_pivots(
    rows: CapturedRows, made: Decomposition, key: nodes.Expression, values: Mapping[str, str], *, anew: bool
) -> None:
    """Store the values of pivoted columns (by logical name); ``anew`` removes what was there."""
    for name, value in values.items():
        member = made.pivot_of(name)
        assert member is not None
        assert member.pivot is not None
        entity, attribute, held = member.pivot
        table = member.table
        if anew:
            same = [
                equal(nodes.ColumnReference(entity, TARGET), key),
                equal(nodes.ColumnReference(attribute, TARGET), nodes.Literal.of(name)),
            ]
            rows.add(nodes.Delete(table_reference(table, TARGET), captured_relation(), all_of(same)), None)
        cells = (key, nodes.Literal.of(name), captured(value))
        there = nodes.IsTest(captured(value), nodes.IsTarget.NULL, negated=True)
        select = nodes.Select(tuple(map(nodes.ResultColumn, cells)), captured_relation(), there)
        target = nodes.TableReference(table.name, table.schema)
        rows.add(nodes.Insert(target, nodes.Query(select), (entity, attribute, held)), None)


def delete_pivots(rows: CapturedRows, made: Decomposition) -> None:
    """Remove all that pivots hold of the captured rows."""
    for member in made.members:
        if member.pivot is not None:
            same = equal(nodes.ColumnReference(member.pivot[0], TARGET), captured(anchor_key(made)))
            target = table_reference(member.table, TARGET)
            rows.add(nodes.Delete(target, captured_relation(), same), None)
