"""A database in plain Python: tables, rows, constraints, and what each statement does to them.

Nothing here is clever: rows are dictionaries, every uniqueness is looked for by going through all rows, a
transaction is a copy.  An operation either changes the tables or raises :class:`Refused`; whoever
calls it puts the tables back as they were then.  What the chapters leave to the order of work is not
modelled: :mod:`tests.evolution.moves` does not ask for it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Test = Callable[[Row], bool]


class Refused(Exception):
    """The database must refuse the statement, and nothing may have changed."""


@dataclass
class Column:
    """A column; a default of None is none."""

    name: str
    kind: str
    null: bool
    default: Any = None


@dataclass
class Index:
    """An index; ``where`` is a column and what it must be greater than."""

    name: str
    columns: list[str]
    unique: bool = False
    where: tuple[str, int] | None = None

    def holds(self, row: Row) -> bool:
        """Whether a row is in it."""
        if self.where is None:
            return True
        column, bound = self.where
        return row[column] is not None and row[column] > bound


@dataclass
class Unique:
    """A UNIQUE constraint."""

    name: str
    columns: list[str]


@dataclass
class Check:
    """``check (column < bound)``."""

    name: str
    column: str
    bound: int

    def passes(self, row: Row) -> bool:
        """True and NULL pass."""
        return row[self.column] is None or row[self.column] < self.bound


@dataclass
class ForeignKey:
    """One column that refers to another table's key."""

    name: str
    column: str
    parent: str
    target: str
    on_delete: str
    on_update: str


@dataclass
class Table:
    """A table with all that is declared for it."""

    name: str
    columns: list[Column]
    key: list[str]
    uniques: list[Unique] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def column(self, name: str) -> Column:
        """A column by name."""
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            raise Refused(f"no column {name}")
        return found

    def constraint_names(self) -> set[str]:
        """The names that a constraint cannot have."""
        return {item.name for item in (*self.uniques, *self.checks, *self.foreign_keys)}

    def tuples(self) -> list[tuple[Any, ...]]:
        """The rows as a query gives them."""
        return [tuple(row[name] for name in self.names) for row in self.rows]

    def keys(self) -> Iterator[tuple[list[str], Callable[[Row], bool]]]:
        """Whatever must be unique besides the primary key, with the rows that count."""
        for unique in self.uniques:
            yield unique.columns, lambda row: True
        for index in self.indexes:
            if index.unique:
                yield index.columns, index.holds

    def rivals(self, row: Row, but: Row | None = None) -> list[Row]:
        """The rows that cannot stand beside this one."""
        others = [other for other in self.rows if other is not but]
        found = [other for other in others if all(other[part] == row[part] for part in self.key)]
        for columns, counts in self.keys():
            if counts(row) and all(row[column] is not None for column in columns):
                found += [
                    other
                    for other in others
                    if counts(other) and all(other[column] == row[column] for column in columns)
                ]
        return found

    def judge(self, row: Row) -> None:
        """NOT NULL and CHECK."""
        for column in self.columns:
            if row[column.name] is None and not column.null:
                raise Refused(f"NULL in {column.name}")
        for check in self.checks:
            if not check.passes(row):
                raise Refused(check.name)

    def judge_all_keys(self) -> None:
        """No two rows may have a key in common."""
        for row in self.rows:
            if self.rivals(row, but=row):
                raise Refused("keys collide")


class Model:
    """All tables, and what can be done to them."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}

    def copy(self) -> dict[str, Table]:
        """The tables as they are now."""
        return copy.deepcopy(self.tables)

    def references(self, parent: Table) -> list[tuple[Table, ForeignKey]]:
        """The foreign keys that refer to a table."""
        return [
            (table, key)
            for table in self.tables.values()
            for key in table.foreign_keys
            if key.parent == parent.name
        ]

    def orphans(self, table: Table, key: ForeignKey) -> list[Row]:
        """The rows without a parent."""
        there = {row[key.target] for row in self.tables[key.parent].rows}
        return [row for row in table.rows if row[key.column] is not None and row[key.column] not in there]

    def settle(self) -> None:
        """A commit: no row may be without its parent."""
        for table in self.tables.values():
            for key in table.foreign_keys:
                if self.orphans(table, key):
                    raise Refused(key.name)

    # -- rows --------------------------------------------------------------------------------------------

    def insert(self, table: Table, rows: Sequence[Row], clause: str = "") -> int:
        """INSERT of whole rows under a clause: ``ignore``, ``replace``, ``nothing`` or ``update COLUMN``."""
        return sum(self._insert(table, dict(row), clause) for row in rows)

    def _insert(self, table: Table, row: Row, clause: str) -> bool:
        if clause == "replace":
            for column in table.columns:
                if row[column.name] is None and not column.null:
                    row[column.name] = column.default
        try:
            table.judge(row)
        except Refused:
            if clause == "ignore":
                return False
            raise
        if rivals := table.rivals(row):
            if clause in ("ignore", "nothing"):
                return False
            if clause == "replace":
                table.rows = [other for other in table.rows if not any(other is rival for rival in rivals)]
            elif clause.startswith("update "):
                return self._upsert(table, row, clause.removeprefix("update "))
            else:
                raise Refused("UNIQUE")
        table.rows.append(row)
        if clause in ("ignore", "replace") and self._is_orphan(table, row):
            if clause == "ignore":
                table.rows.remove(row)
                return False
            raise Refused("FOREIGN KEY")
        return True

    def _is_orphan(self, table: Table, row: Row) -> bool:
        return any(row is orphan for key in table.foreign_keys for orphan in self.orphans(table, key))

    def _upsert(self, table: Table, row: Row, column: str) -> bool:
        same = [other for other in table.rows if all(other[part] == row[part] for part in table.key)]
        if not same:
            raise Refused("UNIQUE of another constraint")
        self._write(table, same[0], {**same[0], column: row[column]})
        return True

    def update(self, table: Table, test: Test, values: Row) -> int:
        """UPDATE to constants."""
        matched = [row for row in table.rows if test(row)]
        for row in matched:
            self._refuse_moves(table, row, {**row, **values})
        for row in matched:
            self._write(table, row, {**row, **values})
        return len(matched)

    def _write(self, table: Table, row: Row, changed: Row) -> None:
        table.judge(changed)
        self._refuse_moves(table, row, changed)
        if table.rivals(changed, but=row):
            raise Refused("UNIQUE")
        before = dict(row)
        row.update(changed)
        for child, key in self.references(table):
            if before[key.target] != row[key.target]:
                for referring in self._referring(child, key, before[key.target]):
                    value = row[key.target] if key.on_update == "cascade" else None
                    self._write(child, referring, {**referring, key.column: value})

    def _refuse_moves(self, table: Table, row: Row, changed: Row) -> None:
        """RESTRICT at any depth below a key that changes."""
        for child, key in self.references(table):
            if row[key.target] == changed[key.target]:
                continue
            for referring in self._referring(child, key, row[key.target]):
                if key.on_update == "restrict":
                    raise Refused(key.name)
                value = changed[key.target] if key.on_update == "cascade" else None
                self._refuse_moves(child, referring, {**referring, key.column: value})

    def delete(self, table: Table, test: Test) -> int:
        """DELETE with all that follows from it."""
        gone = [row for row in table.rows if test(row)]
        self._refuse_deletes(table, gone)
        self._delete(table, gone)
        return len(gone)

    def _refuse_deletes(self, table: Table, rows: Iterable[Row]) -> None:
        for row in rows:
            for child, key in self.references(table):
                referring = self._referring(child, key, row[key.target])
                if referring and key.on_delete == "restrict":
                    raise Refused(key.name)
                if key.on_delete == "cascade":
                    self._refuse_deletes(child, referring)
                else:
                    for other in referring:
                        self._refuse_moves(child, other, {**other, key.column: None})

    def _delete(self, table: Table, rows: Iterable[Row]) -> None:
        for row in rows:
            table.rows = [other for other in table.rows if other is not row]
            for child, key in self.references(table):
                referring = self._referring(child, key, row[key.target])
                if key.on_delete == "cascade":
                    self._delete(child, referring)
                else:
                    for other in referring:
                        self._write(child, other, {**other, key.column: None})

    @staticmethod
    def _referring(child: Table, key: ForeignKey, value: Any) -> list[Row]:
        return [row for row in child.rows if value is not None and row[key.column] == value]

    # -- tables ------------------------------------------------------------------------------------------

    def create_table(self, table: Table) -> None:
        """CREATE TABLE."""
        if table.name in self.tables:
            raise Refused("name")
        self.tables[table.name] = table

    def drop_table(self, table: Table) -> None:
        """DROP TABLE; rows that refer to it forbid it."""
        if any(row[key.column] is not None for child, key in self.references(table) for row in child.rows):
            raise Refused("rows refer to it")
        del self.tables[table.name]

    def rename_table(self, table: Table, name: str) -> None:
        """RENAME TO; foreign keys follow."""
        if name in self.tables:
            raise Refused("name")
        for _, key in self.references(table):
            key.parent = name
        self.tables = {name if old == table.name else old: value for old, value in self.tables.items()}
        table.name = name

    # -- columns -----------------------------------------------------------------------------------------

    def add_column(self, table: Table, column: Column, unique: str | None) -> None:
        """ADD COLUMN, perhaps with a UNIQUE of this name."""
        if column.name in table.names or unique in table.constraint_names():
            raise Refused("name")
        if not column.null and column.default is None and table.rows:
            raise Refused("nothing to fill it with")
        table.columns.append(column)
        for row in table.rows:
            row[column.name] = column.default
        if unique is not None:
            table.uniques.append(Unique(unique, [column.name]))
        table.judge_all_keys()

    def drop_column(self, table: Table, name: str) -> None:
        """DROP COLUMN, with what stands on it."""
        column = table.column(name)
        used = (
            name in table.key
            or any(check.column == name for check in table.checks)
            or any(index.where is not None and index.where[0] == name for index in table.indexes)
            or any(key.target == name for _, key in self.references(table))
        )
        if used:
            raise Refused("something needs it")
        table.columns.remove(column)
        for row in table.rows:
            del row[name]
        table.uniques = [unique for unique in table.uniques if name not in unique.columns]
        table.foreign_keys = [key for key in table.foreign_keys if key.column != name]
        table.indexes = [index for index in table.indexes if not (index.unique and name in index.columns)]
        for index in table.indexes:
            index.columns = [other for other in index.columns if other != name]
        table.indexes = [index for index in table.indexes if index.columns]

    def rename_column(self, table: Table, name: str, new: str) -> None:
        """RENAME COLUMN; everything that names it follows."""
        column = table.column(name)
        if new != name and new in table.names:
            raise Refused("name")
        column.name = new
        swap = {name: new}
        follow = lambda names: [swap.get(other, other) for other in names]  # noqa: E731
        table.key = follow(table.key)
        table.rows = [{swap.get(other, other): value for other, value in row.items()} for row in table.rows]
        for item in (*table.uniques, *table.indexes):
            item.columns = follow(item.columns)
        for index in table.indexes:
            if index.where is not None:
                index.where = (swap.get(index.where[0], index.where[0]), index.where[1])
        for part in (*table.checks, *table.foreign_keys):
            part.column = swap.get(part.column, part.column)
        for _, key in self.references(table):
            key.target = swap.get(key.target, key.target)

    def set_not_null(self, table: Table, name: str) -> None:
        """SET NOT NULL: NULLs become the default."""
        column = table.column(name)
        empty = [row for row in table.rows if row[name] is None]
        if empty and column.default is None:
            raise Refused("NULLs")
        for row in empty:
            row[name] = column.default
        column.null = False
        table.judge_all_keys()

    def set_type(self, table: Table, name: str, kind: str) -> None:
        """SET DATA TYPE, never of a key column."""
        column = table.column(name)
        if name in table.key:
            raise Refused("key")
        column.default = _converted(column.default, kind)
        for row in table.rows:
            row[name] = _converted(row[name], kind)
        column.kind = kind
        table.judge_all_keys()

    def alter_key(self, table: Table, columns: list[str]) -> None:
        """ALTER PRIMARY KEY."""
        for name in columns:
            table.column(name)
        table.key = columns
        table.judge_all_keys()

    # -- constraints and indexes -------------------------------------------------------------------------

    def add_constraint(self, table: Table, constraint: Unique | Check | ForeignKey) -> None:
        """ADD CONSTRAINT; UNIQUE and FOREIGN KEY look at the rows."""
        if constraint.name in table.constraint_names():
            raise Refused("name")
        if isinstance(constraint, Unique):
            table.uniques.append(constraint)
            table.judge_all_keys()
        elif isinstance(constraint, Check):
            table.checks.append(constraint)
        else:
            if self.orphans(table, constraint):
                raise Refused("orphans")
            table.foreign_keys.append(constraint)

    def drop_constraint(self, table: Table, name: str) -> None:
        """DROP CONSTRAINT."""
        if name not in table.constraint_names():
            raise Refused("none")
        table.uniques = [item for item in table.uniques if item.name != name]
        table.checks = [item for item in table.checks if item.name != name]
        table.foreign_keys = [item for item in table.foreign_keys if item.name != name]

    def rename_constraint(self, table: Table, name: str, new: str) -> None:
        """RENAME CONSTRAINT."""
        names = table.constraint_names()
        if name not in names or (new != name and new in names):
            raise Refused("name")
        for item in (*table.uniques, *table.checks, *table.foreign_keys):
            if item.name == name:
                item.name = new

    def create_index(self, table: Table, index: Index) -> None:
        """CREATE INDEX; its name is taken for all tables."""
        if any(index.name == other.name for owner in self.tables.values() for other in owner.indexes):
            raise Refused("name")
        table.indexes.append(index)
        table.judge_all_keys()

    def drop_index(self, name: str) -> None:
        """DROP INDEX."""
        owner = next(
            (table for table in self.tables.values() if any(index.name == name for index in table.indexes)),
            None,
        )
        if owner is None:
            raise Refused("none")
        owner.indexes = [index for index in owner.indexes if index.name != name]


def _converted(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "text":
        return str(value)
    try:
        return int(value)
    except ValueError:
        raise Refused("conversion") from None
