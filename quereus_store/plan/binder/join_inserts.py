"""INSERT through views of joins (view-updates-and-lenses, sections 7 and 8).

Every row becomes one row of each side, parents first.  Columns that the join makes equal form a *shared key*:
it is supplied once for all sides, or else the anchor's DEFAULT gives it, once a row and before
anything is written.  An optional side gets a row only where one of its own values is not null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error, unsupported
from quereus_store.plan.binder import queries
from quereus_store.plan.binder.decompositions import Decomposition
from quereus_store.plan.binder.dml_insert import check_width, numbered, plain_values
from quereus_store.plan.binder.join_decomposed import ANCHOR, check_key_supplied, write_pivots
from quereus_store.plan.binder.join_rows import (
    CapturedRows,
    JoinStatement,
    captured,
    captured_relation,
    projected,
)
from quereus_store.plan.binder.join_writes import pinned_columns, put_side
from quereus_store.plan.binder.logical_syntax import any_of
from quereus_store.plan.binder.rows import bind_default, uses_ordinal
from quereus_store.plan.binder.scopes import RowImage
from quereus_store.plan.binder.view_bodies import coded
from quereus_store.plan.binder.view_joins import (
    JoinOutput,
    JoinView,
    Side,
    equated_columns,
    parents_first,
    references_between,
)
from quereus_store.plan.expressions import BoundExpression, Literal, reference
from quereus_store.plan.mutations import MutationPlan
from quereus_store.plan.nodes import PlanNode
from quereus_store.schema.objects import CheckConstraint, ColumnSchema, fold
from quereus_store.sql import nodes

Place = tuple[int, str]
"""A side and one of its columns, by folded name."""


def bind_join_insert(statement: JoinStatement, node: nodes.Insert) -> MutationPlan:
    """INSERT into a join view."""
    view = statement.view
    if node.returning:
        raise coded(
            "returning-through-view",
            f"RETURNING through a multi-source (join) insert into view '{view.name}' is not yet supported",
            node.position,
        )
    if node.upserts:
        raise sql_error(
            StatusCode.ERROR,
            f"cannot insert through view '{view.name}': ON CONFLICT has no one table to look in",
            node.upserts[0].position or node.position,
        )
    return _Insertion(statement, node).bind()


@dataclass(slots=True)
class _Key:
    """A shared key: the columns that the join makes equal, and the captured column that holds it."""

    places: list[Place]
    name: str | None = None
    generated_for: Side | None = None


@dataclass(slots=True)
class _Insertion:
    """One INSERT into a join view: which captured columns hold what its sides get."""

    statement: JoinStatement
    node: nodes.Insert
    values: dict[Place, str] = field(default_factory=dict)
    flags: dict[int, bool] = field(default_factory=dict)
    keys: list[_Key] = field(default_factory=list)

    @property
    def view(self) -> JoinView:
        """The view."""
        return self.statement.view

    @property
    def position(self) -> SourcePosition | None:
        """Where the statement names the view."""
        return self.node.table.position

    def bind(self) -> MutationPlan:
        """The whole statement."""
        names, source = self._without_flags(
            list(self.node.columns) or insertable_columns(self.view, self.statement.decomposed),
            self.node.source,
        )
        plan = self._source(names, source)
        made_of = self.statement.decomposed
        pivots: dict[str, str] = {}
        for number, name in enumerate(names):
            if made_of is not None and self.view.output(name) and made_of.pivot_of(name) is not None:
                output = self.view.output(name)
                assert output is not None
                pivots[output.name] = f"\0cell{number}"
            else:
                self._supply(self._writable(name), f"\0cell{number}")
        if made_of is not None:
            check_key_supplied(self.view, made_of, names, self.position)
        self._find_keys()
        columns = tuple(plan.columns)
        cells: list[tuple[str, BoundExpression]] = [
            (f"\0cell{number}", reference(column)) for number, column in enumerate(columns)
        ]
        written = self._written()
        self._check_optional_only(written)
        plan, made = self._generated(plan, dict(cells), written)
        cells += made
        verdicts, judged = self._verdicts(dict(cells), names, len(cells))
        cells += judged
        rows = CapturedRows(
            self.statement,
            projected(
                self.statement.environment, plan, [name for name, _ in cells], [value for _, value in cells]
            ),
        )
        catalog = self.statement.environment.context.catalog
        order = written if made_of is not None else parents_first(self.view, written, catalog)
        for side in order:
            self._step(rows, side, source)
        if made_of is not None and pivots:
            write_pivots(rows, made_of, self._anchor_value(made_of), pivots, anew=False)
        return self.statement.sequence(rows, None, verdicts)

    def _anchor_value(self, made_of: Decomposition) -> nodes.Expression:
        """The key that the anchor's row gets."""
        place = (ANCHOR, fold(made_of.anchor.key[0]))
        key = next((key for key in self.keys if place in key.places), None)
        name = self.values.get(place) if key is None else key.name
        if name is None:
            raise unsupported("A pivoted column of a table whose key is not shared", self.position)
        return captured(name)

    def _verdicts(
        self, cells: dict[str, BoundExpression], names: Sequence[str], start: int
    ) -> tuple[tuple[tuple[int, CheckConstraint], ...], list[tuple[str, BoundExpression]]]:
        """The logical CHECKs over what is supplied, judged before anything is written."""
        logical = self.statement.logical
        if logical is None:
            return (), []
        image: dict[str, BoundExpression] = {
            fold(name): cells[f"\0cell{number}"] for number, name in enumerate(names)
        }
        for output in self.view.outputs:
            if output.column is not None and not output.inverted and fold(output.name) not in image:
                (side,) = output.sides
                left_out = _column(self.view.sides[side], output.column)
                if left_out.default is None and left_out.generated is None:
                    image[fold(output.name)] = Literal(left_out.type, True, None, None)
        found = logical.row_checks(image)
        verdicts = tuple([(start + number, check) for number, (check, _) in enumerate(found)])
        return verdicts, [(f"\0check{number}", value) for number, (_, value) in enumerate(found)]

    # --- what is supplied -------------------------------------------------------

    def _refusal(self, reason: str, text: str) -> Error:
        return coded(reason, f"cannot insert through view '{self.view.name}': {text}", self.position)

    def _without_flags(
        self, names: list[str], source: nodes.Query | nodes.DataModification | nodes.DefaultValues
    ) -> tuple[list[str], nodes.Query | nodes.DataModification]:
        """The statement without the existence flags, which are noted."""
        if isinstance(source, nodes.DefaultValues):
            return [], nodes.Query(nodes.Values(((),), position=source.position), position=source.position)
        found: dict[int, JoinOutput] = {}
        for index, name in enumerate(names):
            output = self.view.output(name)
            if output is not None and output.flag is not None:
                found[index] = output
        if not found:
            return names, source
        values = plain_values(source)
        for index, output in found.items():
            cells = [] if values is None else [row[index] for row in values.rows if index < len(row)]
            literals = {cell.value for cell in cells if isinstance(cell, nodes.Literal)}
            uniform = len(literals) == 1 and all(isinstance(cell, nodes.Literal) for cell in cells)
            if not uniform or not literals <= {True, False}:
                raise self._refusal(
                    "unsupported-outer-join-update",
                    f"the existence column '{output.name}' must be uniform across the inserted rows (one"
                    " boolean literal)",
                )
            assert output.flag is not None
            self.flags[output.flag] = bool(next(iter(literals)))
        assert values is not None
        assert isinstance(source, nodes.Query)
        rows = tuple(
            [tuple([cell for index, cell in enumerate(row) if index not in found]) for row in values.rows]
        )
        kept = [name for index, name in enumerate(names) if index not in found]
        return kept, replace(source, body=replace(values, rows=rows))

    def _source(self, names: Sequence[str], source: nodes.Query | nodes.DataModification) -> PlanNode:
        values = plain_values(source)
        if values is not None:
            check_width(values, names)
            if any(isinstance(cell, nodes.DefaultValue) for row in values.rows for cell in row):
                raise unsupported("DEFAULT in the rows of an INSERT into a join view", self.position)
        plan = queries.bind_query_in(self.statement.environment, source)
        if len(plan.columns) != len(names):
            raise sql_error(
                StatusCode.ERROR,
                "Column count mismatch insert clause.",
                source.position or self.node.position,
            )
        return plan

    def _writable(self, name: str) -> JoinOutput:
        output = self.view.output(name)
        if output is None:
            raise self.view.unknown(nodes.ColumnReference(name, position=self.position))
        if output.puts:
            raise self._refusal(
                "no-inverse",
                f"column '{output.name}' carries an authored inverse (WITH INVERSE); evaluating authored puts"
                " through a join view's insert envelope is deferred",
            )
        if output.column is None or output.inverted:
            raise self._refusal(
                "no-inverse",
                f"column '{output.name}' is computed (non-invertible), a transformed (invertible) column, or"
                " not a base column, so it takes no value",
            )
        return output

    def _supply(self, output: JoinOutput, name: str) -> None:
        (side,) = output.sides
        place = (side, fold(output.column or ""))
        if place in self.values:
            table = self.view.sides[side].table.name
            raise sql_error(
                StatusCode.ERROR,
                f"column '{output.column}' specified more than once in INSERT into '{table}'",
                self.position,
            )
        self.values[place] = name

    # --- shared keys ------------------------------------------------------------

    def _find_keys(self) -> None:
        self._check_composite()
        groups: list[set[Place]] = []
        for left, right in equated_columns(self.view):
            pair = {(left[0], fold(left[1])), (right[0], fold(right[1]))}
            touching = [group for group in groups if group & pair]
            groups = [group for group in groups if not group & pair] + [pair.union(*touching)]
        for group in groups:
            exposed = [
                output.name
                for output in self.view.outputs
                if output.column is not None
                and not output.inverted
                and any((side, fold(output.column)) in group for side in output.sides)
            ]
            if len(exposed) > 1:
                shown = ", ".join(f"'{name}'" for name in exposed)
                raise self._refusal(
                    "unsupported-join",
                    f"the shared join key is exposed by more than one view column ({shown}); expose it once",
                )
            supplied = [self.values[place] for place in group if place in self.values]
            self.keys.append(_Key(sorted(group), supplied[0] if supplied else None))

    def _check_composite(self) -> None:
        pairs: dict[tuple[int, int], list[str]] = {}
        for left, right in equated_columns(self.view):
            first, second = sorted((left, right))
            pairs.setdefault((first[0], second[0]), []).append(second[1])
        for (_, second_side), names in pairs.items():
            if len(names) > 1:
                table = self.view.sides[second_side].table.name
                raise self._refusal(
                    "unsupported-decomposition-key",
                    f"base table '{table}' contributes a composite shared key ({', '.join(names)}); only a"
                    " single key column can be shared",
                )

    def _anchor(self, key: _Key, written: Sequence[int]) -> Place | None:
        """The written side whose DEFAULT gives a key: what others refer to, else the first in FROM.

        Where that has no DEFAULT, another side's will do.
        """
        places = [place for place in key.places if place[0] in written]
        if len({side for side, _ in places}) < 2:
            return None
        sides = {side for side, _ in places}
        catalog = self.statement.environment.context.catalog
        references = [pair for pair in references_between(self.view, catalog) if set(pair) <= sides]
        roots = {parent for _, parent in references} - {child for child, _ in references}
        anchor = min(place for place in places if not roots or place[0] in roots)
        having = [
            place for place in places if _column(self.view.sides[place[0]], place[1]).default is not None
        ]
        return anchor if anchor in having or not having else having[0]

    def _generated(
        self, plan: PlanNode, cells: dict[str, BoundExpression], written: Sequence[int]
    ) -> tuple[PlanNode, list[tuple[str, BoundExpression]]]:
        """The keys that nobody supplies, evaluated over each row."""
        made: list[tuple[str, BoundExpression]] = []
        for number, key in enumerate(self.keys):
            anchor = None if key.name is not None else self._anchor(key, written)
            if anchor is None:
                continue
            side = self.view.sides[anchor[0]]
            column = _column(side, anchor[1])
            if column.default is None:
                raise self._refusal(
                    "no-default",
                    f"the shared key '{side.table.name}.{column.name}' is neither supplied nor declares a"
                    " DEFAULT; supply it, or give the column a DEFAULT",
                )
            self._check_one_optional(key, written)
            ordinal: BoundExpression | None = None
            if uses_ordinal(column.default):
                plan, ordinal = numbered(self.statement.environment, plan)
            supplied: RowImage = {
                name: cells[cell] for (at, name), cell in self.values.items() if at == anchor[0]
            }
            context = self.statement.environment.context
            if ordinal is None:
                value = bind_default(context, side.table, column, supplied)
            else:
                value = bind_default(context, side.table, column, supplied, ordinal=ordinal)
            key.name = f"\0key{number}"
            key.generated_for = side
            made.append((key.name, value))
        return plan, made

    def _check_one_optional(self, key: _Key, written: Sequence[int]) -> None:
        sides = {side for side, _ in key.places if side in written and self.view.sides[side].is_optional}
        if len(sides) > 1:
            child = next(self.view.sides[at] for at, _ in key.places if not self.view.sides[at].is_optional)
            raise self._refusal(
                "unsupported-decomposition-key",
                f"the FK-child side '{child.table.name}' threads a single shared key into {len(sides)}"
                " optional (outer-joined) parents; supply the key",
            )

    # --- sides ------------------------------------------------------------------

    def _own(self, side: int) -> list[str]:
        """The captured columns that only a side reads."""
        shared = {place for key in self.keys for place in key.places}
        return [name for place, name in self.values.items() if place[0] == side and place not in shared]

    def _written(self) -> list[int]:
        return [
            index
            for index, side in enumerate(self.view.sides)
            if not side.is_optional
            or self.flags.get(index)
            or (self._own(index) and self.flags.get(index, True))
        ]

    def _check_optional_only(self, written: Sequence[int]) -> None:
        optional = any(self.view.sides[side].is_optional for side in written)
        preserved = any(not self.view.sides[side].is_optional for side, _ in self.values)
        if optional and not preserved:
            raise self._refusal(
                "null-extended-create-conflict",
                "only non-preserved-side columns were supplied through the outer join, so there is no row to"
                " extend",
            )

    def _exists(self, side: int) -> nodes.Expression | None:
        """The condition under which an optional side gets a row; None for always."""
        if not self.view.sides[side].is_optional or self.flags.get(side):
            return None
        return any_of(
            [nodes.IsTest(captured(name), nodes.IsTarget.NULL, negated=True) for name in self._own(side)]
        )

    def _step(self, rows: CapturedRows, side: int, source: nodes.Query | nodes.DataModification) -> None:
        table = self.view.sides[side].table
        values: dict[str, nodes.Expression] = {
            name: captured(cell) for (at, name), cell in self.values.items() if at == side
        }
        for key in self.keys:
            for at, name in key.places:
                if at == side and key.name is not None:
                    values[name] = self._key_value(key, side)
        for name, constant in pinned_columns(self.view, side).items():
            if name in values:
                self._check_pinned(side, name, constant, source)
            values.setdefault(name, constant)
        for name, value in self._view_defaults(side):
            values.setdefault(fold(name), value)
        self._check_filled(side, values)
        select = nodes.Select(
            tuple([nodes.ResultColumn(value) for value in values.values()]),
            captured_relation(),
            self._exists(side),
        )
        columns = tuple(values)
        if not columns:
            select = replace(select, items=(nodes.ResultColumn(nodes.Literal.of(None)),))
            columns = (next(column.name for column in table.columns if column.generated is None),)
        target = nodes.TableReference(table.name, table.schema)
        step = nodes.Insert(
            target, nodes.Query(select), columns, self.node.conflict_action, context=self.node.context
        )
        rows.add(step, side)

    def _key_value(self, key: _Key, side: int) -> nodes.Expression:
        """A shared key as a side stores it: none, where it was made for a partner that is not."""
        assert key.name is not None
        own = key.generated_for
        value: nodes.Expression = captured(key.name)
        if own is None:
            return value
        partner = next(at for at, _ in key.places if self.view.sides[at].is_optional or at == side)
        condition = self._exists(partner)
        if condition is None or partner == side:
            return value
        return nodes.Case(None, (nodes.WhenClause(condition, value),), nodes.Literal.of(None))

    def _check_pinned(
        self,
        side: int,
        name: str,
        constant: nodes.Literal,
        source: nodes.Query | nodes.DataModification,
    ) -> None:
        values = plain_values(source)
        cell = self.values.get((side, name))
        if values is None or cell is None:
            return
        index = int(cell.removeprefix("\0cell"))
        for row in values.rows:
            supplied = row[index]
            if isinstance(supplied, nodes.Literal) and supplied.value != constant.value:
                raise coded(
                    "predicate-contradiction",
                    f"insert into view '{self.view.name}' contradicts its selection predicate on column"
                    f" '{name}'",
                    supplied.position or self.position,
                )

    def _view_defaults(self, side: int) -> Iterator[tuple[str, nodes.Expression]]:
        for default in self.view.defaults:
            output = self.view.output(default.column)
            if output is not None and output.column is not None and output.sides == {side}:
                yield output.column, default.value
            elif output is None and put_side(self.view, _NO_OUTPUT, default) == side:
                yield default.column, default.value

    def _check_filled(self, side: int, values: dict[str, nodes.Expression]) -> None:
        table = self.view.sides[side].table
        for column in table.columns:
            optional = column.nullable or column.default is not None or column.generated is not None
            if optional or fold(column.name) in values:
                continue
            key = next((key for key in self.keys if (side, fold(column.name)) in key.places), None)
            if key is not None and key.name is None:
                text = (
                    f"the shared key '{table.name}.{column.name}' is neither supplied nor declares a DEFAULT"
                )
                raise self._refusal("no-default", f"{text}; supply it, or give the column a DEFAULT")
            raise self._refusal(
                "no-default",
                f"base table '{table.name}' column '{column.name}' is NOT NULL with no default, and the view"
                " gives it no value",
            )


_NO_OUTPUT = JoinOutput("", nodes.Literal.of(None), frozenset(), None)


def _column(side: Side, name: str) -> ColumnSchema:
    position = side.table.column_index(name)
    assert position is not None
    return side.table.columns[position]


def insertable_columns(view: JoinView, made: Decomposition | None = None) -> list[str]:
    """The columns that an INSERT without a list fills."""
    names: list[str] = []
    for output in view.outputs:
        if made is not None and made.pivot_of(output.name) is not None:
            names.append(output.name)
        if output.column is None or output.inverted:
            continue
        (side,) = output.sides
        if _column(view.sides[side], output.column).generated is None:
            names.append(output.name)
    return names
