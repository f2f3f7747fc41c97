"""Rows that go because another row takes their key (REPLACE).

A row at another primary key is *evicted*: an ordinary DELETE, with what foreign
keys refuse and what they bring.  The row at the new row's own primary key is
*overwritten*: the actions of a delete follow, but RESTRICT counts only for a
referenced value that really disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from quereus_store.execute.dml.foreign_keys.parents import ParentSide, parent_side
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.modules.contract import Row
from quereus_store.plan.binder import bind_mutation
from quereus_store.plan.mutations import DeletePlan
from quereus_store.plan.nodes import ParameterRows
from quereus_store.schema.objects import Operation, TableSchema
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.dml.mutation import CompiledMutation


class Eviction:
    """How rows of one table make room."""

    def __init__(self, workshop: Workshop, table: TableSchema) -> None:
        self._workshop = workshop
        self._table = table

    def evict(self, runtime: MutationRuntime, row: Row) -> None:
        """Delete a row; raises CONSTRAINT if a child forbids it."""
        statement = self._delete
        statement.run(statement.runtime(runtime.session, runtime.transaction, (), [row]))

    def before_overwrite(self, runtime: MutationRuntime, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Raise CONSTRAINT if a child refers to a value that the new row does not have."""
        if self._side is None:
            return
        for key in self._side.keys:
            if key.refuses:
                refused = key.refuse(runtime.transaction, old, new)
                if refused is not None:
                    raise self._side.refusal(key.reference, refused)

    def after_overwrite(self, runtime: MutationRuntime, old: Sequence[Row]) -> None:
        """The ON DELETE actions for the rows that were there."""
        if self._side is not None and old:
            self._side.after(runtime, old)

    @cached_property
    def _side(self) -> ParentSide | None:
        if not self._workshop.enforces_keys:
            return None
        return parent_side(self._workshop, self._table, Operation.DELETE, (), cascaded=True)

    @cached_property
    def _delete(self) -> CompiledMutation:
        from quereus_store.execute.dml.mutation import compile_in

        target = nodes.TableReference(name=self._table.name, schema=self._table.schema)
        context = replace(self._workshop.context, parameters={})
        plan = bind_mutation(context, nodes.Delete(target=target))
        assert isinstance(plan, DeletePlan)
        source = ParameterRows(plan.old, tuple(range(len(plan.old))))
        return compile_in(self._workshop, replace(plan, source=source), cascaded=True)
