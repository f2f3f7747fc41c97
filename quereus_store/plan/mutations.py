"""Mutation plans: what a bound INSERT, UPDATE or DELETE asks the executor to do.

A mutation has a *source*, an ordinary plan that is read to its end before the first
write, and expressions over the rows involved.  Rows are known by column numbers, as
everywhere in plans:

==========  ==================================================================================
columns     are
==========  ==================================================================================
source      what the source plan gives
``old``     the row as it is stored: updated, deleted, or in the way of an upsert
``new``     the row as it will be stored, converted; for an upsert's own expressions the
            proposed row
==========  ==================================================================================

So ``checks`` and ``returning`` read ``new`` and ``old``; ``row`` reads source columns.
The work a row then takes (dml-transactions-constraints, section 2): build it by ``row``,
convert where ``converts`` says so, fill in ``generated``, apply ``not_null``, judge
``checks``, write, answer ``returning``.  Foreign keys are not planned: the executor
follows the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from quereus_store.errors import Error
from quereus_store.plan.expressions import BoundExpression, Column
from quereus_store.plan.nodes import CommonTable, PlanNode
from quereus_store.records import record
from quereus_store.schema.objects import CheckConstraint, ConflictAction, TableSchema


@record(frozen=True, slots=True)
class GeneratedPlan:
    """A generated column: its position and its value over ``new``, whose earlier columns are filled in."""

    position: int
    expression: BoundExpression
    converts: bool


@record(frozen=True, slots=True)
class NotNullPlan:
    """A NOT NULL column and what a NULL in it does; ``substitute`` (for REPLACE) reads ``new``."""

    position: int
    action: ConflictAction | None
    substitute: BoundExpression | None = None


@record(frozen=True, slots=True)
class CheckPlan:
    """A CHECK over ``new`` and ``old``; ``deferred`` ones read other rows and are judged at commit."""

    constraint: CheckConstraint
    expression: BoundExpression
    deferred: bool


@record(frozen=True, slots=True)
class ReturningPlan:
    """RETURNING: one expression over ``new`` and ``old`` for each column."""

    columns: tuple[Column, ...]
    expressions: tuple[BoundExpression, ...]


@record(frozen=True, slots=True)
class ContextPlan:
    """The mutation context: what each variable means, and the ``values`` to evaluate before all else.

    A variable is a constant, a parameter, the number of one of the values, or the error of reading it.
    """

    variables: Mapping[str, BoundExpression | Error] = field(default_factory=dict)
    values: tuple[BoundExpression, ...] = ()


@record(frozen=True, slots=True)
class UpsertPlan:
    """One ON CONFLICT clause.

    ``target`` holds the positions of its columns (None: any conflict).  Without
    ``assigned`` it is DO NOTHING.  ``row`` gives the composed row (None where
    generated) and ``where`` its condition, over ``old`` (the existing row) and
    ``new`` (the proposed one).  ``checks`` then judge the composed row as ``new``.  ``queried`` gives,
    over both, one row with what each ``(a, b) = (query)`` assigns, which ``row`` reads.
    """

    target: tuple[int, ...] | None
    assigned: tuple[int, ...] = ()
    row: tuple[BoundExpression | None, ...] = ()
    converts: tuple[bool, ...] = ()
    where: BoundExpression | None = None
    not_null: tuple[NotNullPlan, ...] = ()
    checks: tuple[CheckPlan, ...] = ()
    queried: PlanNode | None = None


@record(frozen=True, slots=True)
class MutationPlan:
    """What all three have: the table, CTEs in sight of every part, the source, the row images.

    ``generated`` is in dependency order; ``conflict`` is the statement's OR clause; ``beside`` are the
    columns of FROM or USING that RETURNING reads, the last ones that the source gives.
    """

    table: TableSchema
    common_tables: tuple[CommonTable, ...]
    source: PlanNode
    new: tuple[Column, ...]
    old: tuple[Column, ...]
    generated: tuple[GeneratedPlan, ...]
    not_null: tuple[NotNullPlan, ...]
    checks: tuple[CheckPlan, ...]
    returning: ReturningPlan | None
    conflict: ConflictAction | None
    context: ContextPlan = field(default_factory=ContextPlan, kw_only=True)
    beside: tuple[Column, ...] = field(default=(), kw_only=True)


@record(frozen=True, slots=True)
class InsertPlan(MutationPlan):
    """INSERT: ``row`` gives each column's value over the source's columns (None where generated).

    ``batchable``: the source is a ParameterRows, no parameter is read outside ``row``
    and ``row`` reads no table, so many sets of parameters can be inserted as one batch.
    """

    row: tuple[BoundExpression | None, ...]
    converts: tuple[bool, ...]
    upserts: tuple[UpsertPlan, ...] = ()
    batchable: bool = False


@record(frozen=True, slots=True)
class UpdatePlan(MutationPlan):
    """UPDATE: the source gives the whole old row (``old``, in order), the values assigned, then ``beside``.

    ``row`` builds the new row from them (None where generated); ``assigned`` lists
    the columns that SET names.  With FROM, ``matches_once`` is False: the source may
    give an old row several times, and only the first counts.
    """

    row: tuple[BoundExpression | None, ...]
    converts: tuple[bool, ...]
    assigned: tuple[int, ...]
    matches_once: bool = True


@record(frozen=True, slots=True)
class DeletePlan(MutationPlan):
    """DELETE: the source gives whole old rows; with USING (``matches_once`` False) maybe some twice."""

    matches_once: bool = True


@record(frozen=True, slots=True)
class SequencePlan(MutationPlan):
    """Several mutations over the rows of one query: ``source``, which is run once, before any of them.

    The ``steps`` run in order and read these rows as the given rows of slot 0; so does ``result``, which
    gives RETURNING's rows in the end.  ``table`` is one of those that are written.  ``verdicts`` are
    columns of the source that hold whether a row passes a CHECK, judged before any step.  Of rows with the
    same value in the column ``once`` only the first counts.
    """

    steps: tuple[MutationPlan, ...] = ()
    result: PlanNode | None = None
    verdicts: tuple[tuple[int, CheckConstraint], ...] = ()
    once: int | None = None
