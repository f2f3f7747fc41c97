"""What has to happen to an existing table, whether a query maintains it or not.

What an existing table is becomes another thing in place where its rows are the user's: an ordinary table
whose derivation is declared is altered first and attached then, and a maintained one that is declared
ordinary is detached and keeps its rows.  A maintained table whose shape or module changes is dropped
and created: its rows come from its body anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from quereus_store.schema.constraints import NamedConstraint
from quereus_store.schema.differ.bodies import Bodied, derivation_changed
from quereus_store.schema.differ.columns import ColumnSteps, column_steps
from quereus_store.schema.differ.constraints import constraint_steps
from quereus_store.schema.differ.matching import RenamePolicy, require_hints, same_tags
from quereus_store.schema.differ.text import identifier, names_in, object_name, qualified, tag_list
from quereus_store.schema.objects import TableSchema, fold
from quereus_store.sql import nodes, render
from quereus_store.sql.traversal import walk


@dataclass(slots=True)
class TableSteps:
    """Statements by phase; ``block`` is the table's own part of the alterations."""

    early: list[str] = field(default_factory=list)
    block: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    drop_columns: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    attach: list[str] = field(default_factory=list)
    attaches: bool = False
    """Whether the table gets a body."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """A declared table and the existing one that it is, as renames leave it.

    ``renamed`` has the old names of columns by folded new name, ``columns`` what happens to columns.
    """

    item: nodes.CreateTable
    declared: TableSchema
    actual: TableSchema
    renamed: Mapping[str, str]
    columns: ColumnSteps

    @classmethod
    def of(
        cls, item: nodes.CreateTable, declared: TableSchema, actual: TableSchema, renamed: Mapping[str, str]
    ) -> Alteration:
        """With its columns compared."""
        return cls(item, declared, actual, renamed, column_steps(declared, item, actual))

    @property
    def changes_key(self) -> bool:
        """Whether the primary key changes."""
        return _key(self.declared) != _key(self.actual)

    @property
    def changes_shape(self) -> bool:
        """Whether columns or key change."""
        return bool(self.columns.shape) or self.changes_key

    def comes_before(self, item: Bodied) -> bool:
        """Whether what reads this table can be created only after the alterations of it.

        A plain view needs the columns that it names, and its own columns need as many; rows that are
        kept must also stay right.
        """
        names = names_in(item)
        star = any(isinstance(node, nodes.ResultStar) for node in walk(item))
        resized = bool(self.columns.add or self.columns.drop)
        if not self.columns.fresh.isdisjoint(names):
            return True
        if isinstance(item, nodes.CreateView):
            return star and resized and bool(item.columns)
        return self.reaches(item) or (bool(self.renamed) and (star or not names.isdisjoint(self.renamed)))

    def reaches(self, body: nodes.Node) -> bool:
        """Whether a maintained table of that body, which reads this one, may not fit any more."""
        columns = self.columns
        if columns.reformed or columns.drop or columns.remade or self.changes_key:
            return True
        return bool(columns.add) and any(isinstance(node, nodes.ResultStar) for node in walk(body))

    def steps(
        self,
        policy: RenamePolicy,
        uses_dropped: Callable[[NamedConstraint], bool],
        uses_remade: Callable[[NamedConstraint], bool],
    ) -> TableSteps:
        """Compare the two; of a maintained table that stays one, the shape must be as declared."""
        columns = self.columns
        self._require_column_hints(policy)
        constraints = constraint_steps(
            self.item, self.declared, self.actual, columns, policy, uses_dropped, uses_remade
        )
        renames = [
            f"RENAME COLUMN {identifier(old)} TO {identifier(self._column(new))}"
            for new, old in self.renamed.items()
        ]
        shape = [
            *constraints.before,
            *columns.add,
            *columns.alter,
            *constraints.rename,
            *constraints.drop,
            *constraints.key,
            *columns.retype,
            *constraints.add,
        ]
        tags = [*columns.tags, *constraints.tags]
        derived = self.declared.derivation is not None and self.actual.derivation is not None
        retagged = not same_tags(self.declared.tags, self.actual.tags)
        if retagged and not derived:
            tags.insert(0, f"SET TAGS {tag_list(self.declared.tags)}")
        # A maintained table can get new constraints; of those it has it can neither lose nor change one.
        fixed = derived and bool(tags or renames or constraints.early or shape != constraints.add)
        result = TableSteps(
            early=self._alter(constraints.early),
            block=self._alter([*renames, *shape]),
            references=self._alter(constraints.references),
            drop_columns=self._alter(columns.drop),
            tags=self._alter(tags),
        )
        self._derive(result, fixed)
        if retagged and derived:
            tagged = f"ALTER MATERIALIZED VIEW {self._name} SET TAGS {tag_list(self.declared.tags)}"
            result.attach.append(tagged)
        return result

    def _require_column_hints(self, policy: RenamePolicy) -> None:
        """Under REQUIRE_HINT a table does not lose some columns and get others."""
        present = {fold(column.name): column.name for column in self.actual.columns}
        wanted = {fold(column.name): column.name for column in self.declared.columns}
        require_hints(
            f"column of table '{self.declared.name}'",
            [name for key, name in wanted.items() if key not in present],
            [name for key, name in present.items() if key not in wanted],
            policy,
        )

    def _derive(self, result: TableSteps, fixed: bool) -> None:
        """The steps from and to a derivation; a ``fixed`` one has to be taken off meanwhile."""
        clause, present = self.item.maintained, self.actual.derivation
        if present is not None and (clause is None or fixed):
            result.early.insert(0, f"ALTER TABLE {self._name} DROP MAINTAINED")
            present = None
        if clause is not None and derivation_changed(clause, present):
            name = object_name(self.declared.schema, self.declared.name)
            action = nodes.SetMaintained(clause.query, clause.columns)
            result.attaches = True
            result.attach.append(render(nodes.AlterTable(name, action)))

    @property
    def _name(self) -> str:
        return qualified(self.declared.schema, self.declared.name)

    def _alter(self, actions: Iterable[str]) -> list[str]:
        return [f"ALTER TABLE {self._name} {action}" for action in actions]

    def _column(self, folded: str) -> str:
        position = self.declared.column_index(folded)
        assert position is not None
        return self.declared.columns[position].name


def _key(table: TableSchema) -> list[tuple[str, bool]]:
    return [(fold(table.columns[part.column].name), part.descending) for part in table.primary_key.parts]
