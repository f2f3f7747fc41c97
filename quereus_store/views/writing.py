"""Writing derived rows: deletes, then updates, then inserts, and what their constraints say.

A maintained table may declare CHECK, UNIQUE and FOREIGN KEY constraints.  They are
claims about derived rows: a violation fails the statement that changed the source.
UNIQUE is judged on the final contents of a batch, so rows may change places; where each row
comes of one row of the source, each is a batch of its own.

Chapter: views-and-maintained-tables, sections 6 and 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.codegen.rowfunctions import compile_row_function
from quereus_store.execute.dml.changes import record_changes
from quereus_store.execute.dml.foreign_keys.children import ChildCheck, child_checks
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.notification.events import RowMerge
from quereus_store.modules.contract import Row, UniqueViolation
from quereus_store.plan.analysis import has_subquery
from quereus_store.plan.binder.rows import bind_row_expression
from quereus_store.plan.expressions import IsTest, Truth
from quereus_store.schema.objects import CheckConstraint, ForeignKey, Operation, TableSchema
from quereus_store.sql import nodes
from quereus_store.sql.renderer import canonical_text
from quereus_store.types import BOOLEAN, to_text
from quereus_store.views.hosts import backing_host
from quereus_store.views.parents import DerivedParent, FollowUp
from quereus_store.views.rows import Difference

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction

_LONGEST_SHOWN = 60
_JUDGED = frozenset({Operation.INSERT, Operation.UPDATE})


class TableWriter:
    """Writes the rows of one maintained table.

    ``weakened`` are the key columns because of which the key may not tell all rows of the source apart; of
    those that meet, the last one stays.
    ``duplicates`` is the error for rows that meet under the key where it is not the usual one.
    """

    def __init__(
        self,
        engine: Engine,
        table: TableSchema,
        *,
        weakened: Sequence[int] = (),
        duplicates: Error | None = None,
    ) -> None:
        self._table = table
        self._duplicates = duplicates
        self._weakened = tuple(weakened)
        self._key = tuple([part.column for part in table.primary_key.parts])
        self._handle = backing_host(engine, table)
        self._one_by_one = not table.unique_constraints
        self._required = [
            part.column for part in table.primary_key.parts if not table.columns[part.column].nullable
        ]
        self._parent = DerivedParent(table)
        self._judges = bool(table.foreign_keys) or any(check.operations & _JUDGED for check in table.checks)

    def write(
        self,
        session: Session,
        transaction: Transaction,
        difference: Difference,
        *,
        logs: bool = True,
        all_rows: Sequence[Row] | None = None,
    ) -> Sequence[FollowUp]:
        """Change the stored rows; raises CONSTRAINT for what constraints refuse.

        ``logs``: somebody may want to know of the change.  ``all_rows``: those that there are to be, if
        the table has been emptied.  Gives what is still to be done to rows that refer to the table.
        """
        table = self._table
        deleted, inserted = difference.deleted, difference.inserted
        old, new = difference.old, difference.new
        for position in self._required:
            for rows in (inserted, new):
                if rows and None in [row[position] for row in rows]:
                    raise null_in_key(table, position)
        waiting: Sequence[FollowUp] = ()
        if deleted or old:
            waiting = self._parent.before(session, transaction, difference)
        if old and not (self._one_by_one or difference.in_order):
            # One by one, an update could meet a value that a later one gives up.
            deleted, inserted, old, new = deleted + old, inserted + new, [], []
        writer, handle = transaction.writer(table.module), self._handle
        try:
            if self._weakened:
                self._merge(transaction, difference)
            elif all_rows is not None:
                handle.insert(writer, all_rows)
            else:
                if deleted:
                    handle.delete(writer, deleted)
                if old:
                    handle.update(writer, old, new)
                if inserted:
                    handle.insert(writer, inserted)
        except UniqueViolation as violation:
            if violation.constraint is None and self._duplicates is not None:
                raise self._duplicates from violation
            raise collision(table, violation) from violation
        if self._judges and (difference.inserted or difference.new):
            judge_rows(session, transaction, table, difference.inserted + difference.new)
        if logs:
            _record(transaction, table, difference)
        return waiting

    def _merge(self, transaction: Transaction, difference: Difference) -> None:
        """Write row by row over what is stored under each key; the difference becomes what that came to."""
        table, handle = self._table, self._handle
        writer = transaction.writer(table.module)
        pairs: list[tuple[Row | None, Row | None]] = [(row, None) for row in difference.deleted]
        pairs += zip(difference.old, difference.new, strict=True)
        pairs += [(None, row) for row in difference.inserted]
        done = Difference()
        for old, new in pairs:
            named = new if old is None else old
            assert named is not None
            key = tuple([named[column] for column in self._key])
            stored = handle.point(transaction.reader(table.module), key)
            if stored is None and new is not None:
                handle.insert(writer, [new])
                done.inserted.append(new)
            elif stored is not None and new is None:
                handle.delete(writer, [stored])
                done.deleted.append(stored)
            elif stored is not None and new is not None:
                handle.update(writer, [stored], [new])
                done.old.append(stored)
                done.new.append(new)
                if self._differ(stored, new) and (old is None or self._differ(stored, old)):
                    transaction.announced.append(self._row_merge(stored, new))
        difference.deleted, difference.inserted = done.deleted, done.inserted
        difference.old, difference.new = done.old, done.new

    def _differ(self, one: Row, other: Row) -> bool:
        """Whether two rows of one key come of two rows of the source."""
        return any(one[column] != other[column] for column in self._weakened)

    def _row_merge(self, stored: Row, new: Row) -> RowMerge:
        table = self._table
        weakened = tuple([table.columns[column].name for column in self._weakened])
        key = tuple([new[column] for column in self._key])
        return RowMerge(table.schema, table.name, key, weakened, stored, new)


def _record(transaction: Transaction, table: TableSchema, difference: Difference) -> None:
    """Note in the transaction's log what was written."""
    if difference.deleted:
        record_changes(transaction, table, Operation.DELETE, difference.deleted, ())
    if difference.old:
        record_changes(transaction, table, Operation.UPDATE, difference.old, difference.new)
    if difference.inserted:
        record_changes(transaction, table, Operation.INSERT, (), difference.inserted)


def write_difference(
    session: Session,
    transaction: Transaction,
    table: TableSchema,
    difference: Difference,
    duplicates: Error | None = None,
    all_rows: Sequence[Row] | None = None,
) -> None:
    """Change the stored rows of a maintained table; raises CONSTRAINT for what its constraints refuse."""
    if difference or all_rows:
        writer = TableWriter(session.engine, table, duplicates=duplicates)
        for follow_up in writer.write(session, transaction, difference, all_rows=all_rows):
            follow_up()


def null_in_key(table: TableSchema, position: int) -> Error:
    """The error for a NULL in a key column that was NOT NULL when the table was made."""
    column = table.columns[position].name
    return sql_error(
        StatusCode.CONSTRAINT,
        f"maintaining materialized view '{table.qualified_name}' would store NULL in column '{column}', which"
        " the backing declares NOT NULL because the view's `order by` seeded it into the physical primary"
        " key; the source column became nullable and now produces a NULL row. Recreate the view without"
        f" `order by {column}` (or excluding {column} from the ordering) to allow nullable values in it.",
    )


def collision(table: TableSchema, violation: UniqueViolation) -> Error:
    """The error for derived rows that meet under a key."""
    constraint = violation.constraint
    if constraint is None:
        return duplicate_key(table, violation.row)
    names = ", ".join(table.columns[column].name for column in constraint.columns)
    return sql_error(
        StatusCode.CONSTRAINT,
        f"UNIQUE constraint failed: {constraint.name} ({names}) — row derived into maintained table"
        f" '{table.qualified_name}' collides on its declared UNIQUE constraint"
        f" (key: {shown_key(violation.row, constraint.columns)})",
    )


def duplicate_key(table: TableSchema, row: Row) -> Error:
    """The error for a body that gives two rows of one primary key."""
    columns = [part.column for part in table.primary_key.parts]
    return sql_error(
        StatusCode.CONSTRAINT,
        f"cannot attach derivation to '{table.qualified_name}': the body produces duplicate rows for"
        f" primary key ({shown_key(row, columns)}), but a maintained table must be a set —"
        " project a unique key or merge the colliding source rows first",
    )


def shown_key(row: Row, columns: Any) -> str:
    """Key values as messages show them."""
    return ", ".join(_shown(row[column]) for column in columns)


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    text = to_text(value) or ""
    return f"'{text}'" if isinstance(value, str) else text


# --- constraints ------------------------------------------------------------------------------------------


def judge_rows(session: Session, transaction: Transaction, table: TableSchema, rows: list[Row]) -> None:
    """Judge CHECKs at once; those that read other rows, and foreign keys, when the transaction commits."""
    for check in table.checks:
        if check.operations & _JUDGED:
            _judge_check(session, transaction, table, check, rows)
    if table.foreign_keys and session.options["foreign_keys"]:
        transaction.deferred.append(partial(_judge_keys, session, table, rows))


def _judge_check(
    session: Session, transaction: Transaction, table: TableSchema, check: CheckConstraint, rows: list[Row]
) -> None:
    engine = session.engine
    context = engine.bind_context(transaction.catalog)
    bound, columns = bind_row_expression(context, table, check.expression)
    if has_subquery(bound):
        transaction.deferred.append(partial(_judge_later, session, table, check))
        return
    fails = IsTest(BOOLEAN, False, None, bound, Truth.FALSE)
    if any(compile_row_function(fails, columns, engine)(rows)):
        raise check_violation(table, check)


def _judge_later(
    session: Session, table: TableSchema, check: CheckConstraint, transaction: Transaction
) -> None:
    """A CHECK that reads other rows judges the table as it is at the commit."""
    now = transaction.catalog.table(table.schema, table.name)
    if now is None or check not in now.checks:
        return
    fails = nodes.UnaryOperation(nodes.UnaryOperator.NOT, check.expression)
    select = nodes.Select(
        (nodes.ResultColumn(nodes.Literal.of(1)),),
        source=nodes.TableReference(now.name, now.schema),
        where=fails,
    )
    query = nodes.Query(select, limit=nodes.Literal.of(1))
    if any(batch for batch in session.query_within(transaction, query)):
        raise check_violation(now, check)


def check_violation(table: TableSchema, check: CheckConstraint) -> Error:
    """The error for a derived row that a CHECK refuses."""
    text = canonical_text(check.expression)
    shown = f" ({text})" if len(text) <= _LONGEST_SHOWN else ""
    return sql_error(
        StatusCode.CONSTRAINT,
        f"CHECK constraint failed: {check.name}{shown} — row derived into maintained table"
        f" '{table.qualified_name}' violates its declared constraint",
    )


def _judge_keys(session: Session, table: TableSchema, rows: list[Row], transaction: Transaction) -> None:
    now = transaction.catalog.table(table.schema, table.name)
    if now is None or now.storage_id != table.storage_id:
        return
    engine = session.engine
    workshop = Workshop(engine, engine.bind_context(transaction.catalog, options=session.options))
    for key, check in zip(now.foreign_keys, child_checks(workshop, now), strict=True):
        _judge_key(transaction, now, key, check, rows)


def _judge_key(
    transaction: Transaction, table: TableSchema, key: ForeignKey, check: ChildCheck, rows: list[Row]
) -> None:
    if check.orphans(transaction, check.still_there(transaction, rows)):
        parent = f"{key.parent_schema or table.schema}.{key.parent_table}"
        raise sql_error(
            StatusCode.CONSTRAINT,
            f"FOREIGN KEY constraint failed: {key.name} — row derived into maintained table"
            f" '{table.qualified_name}' references a missing '{parent}'",
        )
