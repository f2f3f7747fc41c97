"""Random histories of changes: statements and transactions, as steps that every system runs.

After each step all systems must agree on whether it failed, on how many rows it changed,
on what it returned, on whether a transaction is open, and on the rows of every table.
What depends on the order in which a statement visits rows is not asked for: a change of
keys touches one row, and FK checks are deferred in SQLite as they are here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.differential.choices import Choices
from tests.differential.expressions import Expr, Expressions
from tests.differential.queries import Queries
from tests.differential.worlds import Column, Table

COMMON = """
create table d1 (id integer primary key, a integer {null}, b integer not null default 4 check (b <> 7),
    s text {null}, u integer {null} unique, g integer {null} generated always as (a + b) stored);
create table d2 (x integer not null, y text not null, w integer {null}, v real {null},
    primary key (x, y desc), unique (w, y));
create table p (id integer primary key, n text {null} collate nocase unique);
create table c1 (id integer primary key,
    p integer {null} references p (id) on delete cascade on update cascade {deferred});
create table c2 (id integer primary key,
    p integer {null} references p (id) on delete set null on update set null {deferred},
    c integer {null} references c1 (id) on delete cascade on update cascade {deferred});
"""

INDEXES = (
    "create index j1 on d1 (a)",
    "create index j2 on d1 (s desc, b)",
    "create index j3 on d1 (g)",
    "create index j4 on d2 (v)",
    "create index j5 on d2 (y)",
    "create index j6 on c1 (p)",
    "create index j7 on c2 (p)",
    "create index j8 on d1 (b) where a > 1",
    "create index j9 on d2 (w) where w is not null",
)

D1 = Table(
    "d1",
    (
        Column("id", "int", False),
        Column("a", "int"),
        Column("b", "int", False),
        Column("s", "text"),
        Column("u", "int"),
        Column("g", "int"),
    ),
    ("id",),
)
D2 = Table(
    "d2",
    (Column("x", "int", False), Column("y", "text", False), Column("w", "int"), Column("v", "real")),
    ("x", "y desc"),
)
P = Table("p", (Column("id", "int", False), Column("n", "nocase")), ("id",))
C1 = Table("c1", (Column("id", "int", False), Column("p", "int")), ("id",))
C2 = Table("c2", (Column("id", "int", False), Column("p", "int"), Column("c", "int")), ("id",))

TABLES = (D1, D2, P, C1, C2)
UNIQUE = {"d1": ("id", "u"), "d2": ("x", "y", "w"), "p": ("id", "n"), "c1": ("id",), "c2": ("id",)}
TARGETS = {"d1": ("id", "u"), "d2": ("x, y", "w, y"), "p": ("id", "n"), "c1": ("id",), "c2": ("id",)}


def schema(dialect: str) -> list[str]:
    """The CREATE statements of a dialect."""
    sqlite = dialect == "sqlite"
    text = COMMON.format(
        null="" if sqlite else "null", deferred="deferrable initially deferred" if sqlite else ""
    )
    if sqlite:
        # An "integer primary key" would take NULL for a number to be chosen.
        text = text.replace("integer primary key", "int not null primary key")
    return [statement for statement in text.split(";") if statement.strip()]


@dataclass(frozen=True)
class Step:
    """One statement; ``rows`` are the parameter tuples of an executemany."""

    quereus: str
    sqlite: str
    parameters: dict[str, object] = field(default_factory=dict)
    rows: tuple[tuple[object, ...], ...] | None = None
    types: tuple[str, ...] = ()


class Histories:
    """Makes steps; ``open_savepoints`` and ``in_transaction`` follow what has been asked for."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.in_transaction = False
        self.savepoints: list[str] = []

    def step(self) -> Step:
        """The next step."""
        form = self.choices.below(100)
        if form >= 80:
            return self._transaction_step()
        table = self.choices.one_of(TABLES)
        makers: tuple[Callable[[Table], Step], ...] = (
            self._insert,
            self._insert,
            self._update,
            self._delete,
            self._upsert,
            self._many,
            self._insert_select,
            self._key_update,
        )
        return self.choices.one_of(makers)(table)

    def _transaction_step(self) -> Step:
        if not self.in_transaction:
            self.in_transaction = True
            return _plain("begin")
        form = self.choices.below(6)
        if form == 0 or (form > 3 and not self.savepoints):
            self.in_transaction = False
            self.savepoints = []
            return _plain(self.choices.one_of(("commit", "commit", "rollback")))
        if form <= 3:
            name = self.choices.one_of(("one", "two", "three"))
            self.savepoints.append(name)
            return _plain(f"savepoint {name}")
        name = self.choices.one_of(self.savepoints)
        position = len(self.savepoints) - 1 - self.savepoints[::-1].index(name)
        if form == 4:
            del self.savepoints[position:]
            return _plain(f"release {name}")
        del self.savepoints[position + 1 :]
        return _plain(f"rollback to {name}")

    def ended(self) -> None:
        """A failure has ended the transaction."""
        self.in_transaction = False
        self.savepoints = []

    # -- values --------------------------------------------------------------------

    def _columns(self, table: Table) -> list[Column]:
        return [column for column in table.columns if column.name != "g"]

    def _value(self, column: Column) -> object:
        if column.nullable and self.choices.chance(25):
            return None
        if self.choices.chance(1):
            return None
        if column.type == "int":
            return self.choices.one_of((1, 2, 3, 4, 5, 6, 7, 8))
        if column.type == "real":
            return self.choices.one_of((0.5, 1.0, -2.5))
        return self.choices.one_of(("a", "A", "b", "", "ab"))

    def _literal(self, column: Column) -> str:
        value = self._value(column)
        return "null" if value is None else repr(value)

    def _row(self, columns: Sequence[Column]) -> str:
        return "(" + ", ".join(self._literal(column) for column in columns) + ")"

    def _chosen(self, table: Table) -> list[Column]:
        """The columns of an INSERT: usually all."""
        columns = self._columns(table)
        if self.choices.chance(20):
            keys = {part.split()[0] for part in table.key}
            columns = [c for c in columns if c.name in keys or (c.nullable and self.choices.chance(50))]
        return columns

    def _word(self, table: Table) -> str:
        if table.name in ("c1", "c2"):
            # An OR clause covers foreign keys here and does not in SQLite.
            return ""
        return self.choices.one_of(
            ("", "", "", " or ignore", " or replace", " or fail", " or abort", " or rollback")
        )

    def _returning(self, table: Table) -> tuple[str, tuple[str, ...]]:
        if not self.choices.chance(20):
            return "", ()
        return " returning *", tuple(column.type for column in table.columns)

    # -- statements ------------------------------------------------------------------

    def _insert(self, table: Table) -> Step:
        columns = self._chosen(table)
        names = ", ".join(column.name for column in columns)
        rows = ", ".join(self._row(columns) for _ in range(1 + self.choices.below(3)))
        returning, types = self._returning(table)
        return _plain(
            f"insert{self._word(table)} into {table.name} ({names}) values {rows}{returning}", types
        )

    def _many(self, table: Table) -> Step:
        columns = self._columns(table)
        names = ", ".join(column.name for column in columns)
        rows = tuple(
            tuple(self._value(column) for column in columns) for _ in range(1 + self.choices.below(4))
        )
        sql = (
            f"insert{self._word(table)} into {table.name} ({names}) values ({', '.join('?' * len(columns))})"
        )
        if "rollback" in sql:
            sql = sql.replace(" or rollback", "")
        return Step(sql, sql, rows=rows)

    def _upsert(self, table: Table) -> Step:
        columns = self._columns(table)
        names = ", ".join(column.name for column in columns)
        rows = ", ".join(self._row(columns) for _ in range(1 + self.choices.below(3)))
        target = self.choices.one_of(TARGETS[table.name])
        clause = f"on conflict ({target}) do "
        free = [column for column in columns if column.name not in UNIQUE[table.name]]
        if not free or self.choices.chance(30):
            clause += "nothing"
        else:
            column = self.choices.one_of(free)
            other = f"excluded.{column.name}" if self.choices.chance(60) else self._literal(column)
            clause += f"update set {column.name} = {other}"
            if self.choices.chance(40):
                key = table.key[0].split()[0]
                clause += f" where {table.name}.{key} {self.choices.one_of(('>', '<', '='))} 3"
        returning, types = self._returning(table)
        return _plain(f"insert into {table.name} ({names}) values {rows} {clause}{returning}", types)

    def _query_parts(self, table: Table) -> tuple[Queries, Expressions]:
        queries = Queries(self.choices, TABLES, 1)
        own = tuple(
            Expr(f"{table.name}.{c.name}", f"{table.name}.{c.name}", c.type, True) for c in table.columns
        )
        return queries, queries._expressions(own, (), 1)

    def _insert_select(self, table: Table) -> Step:
        columns = self._columns(table)
        queries = Queries(self.choices, TABLES, 1)
        types = ["text" if column.type == "nocase" else column.type for column in columns]
        body = queries.compound(1, types) if self.choices.chance(15) else queries.select(1, types)
        # In key order both meet conflicts in the same order.
        names = ", ".join(column.name for column in columns)
        order = ", ".join(str(index + 1) for index in range(len(columns)))
        head = f"insert{self._word(table)} into {table.name} ({names}) "
        quereus = f"{head}select * from ({body.quereus}) where true order by {order}"
        terms = order.replace(",", " nulls first,") + " nulls first"
        sqlite = f"{head}select * from ({body.sqlite}) where true order by {terms}"
        return Step(quereus, sqlite, dict(queries.parameters.values))

    def _update(self, table: Table) -> Step:
        free = [column for column in self._columns(table) if column.name not in UNIQUE[table.name]]
        if not free:
            return self._key_update(table)
        queries, maker = self._query_parts(table)
        sets = []
        for column in free[: 1 + self.choices.below(2)]:
            value = maker.make(column.type, 2)
            sets.append((f"{column.name} = {value.quereus}", f"{column.name} = {value.sqlite}"))
        where = maker.make("bool", 2)
        returning, types = self._returning(table)
        quereus, sqlite = (
            f"update {table.name} set {', '.join(pair[side] for pair in sets)}"
            f" where {(where.quereus, where.sqlite)[side]}{returning}"
            for side in (0, 1)
        )
        return Step(quereus, sqlite, dict(queries.parameters.values), types=types)

    def _key_update(self, table: Table) -> Step:
        """A change of a key column in at most one row."""
        column = self.choices.one_of([c for c in table.columns if c.name in UNIQUE[table.name]])
        word = self._word(table)
        value = self._literal(column)
        if column.type == "int" and self.choices.chance(30):
            value = f"{column.name} + 1"
        keys = [part.split()[0] for part in table.key]
        by_name = {c.name: c for c in table.columns}
        where = " and ".join(f"{key} = {self._literal(by_name[key])}" for key in keys)
        returning, types = self._returning(table)
        return _plain(
            f"update{word} {table.name} set {column.name} = {value} where {where}{returning}", types
        )

    def _delete(self, table: Table) -> Step:
        queries, maker = self._query_parts(table)
        where = maker.make("bool", 2)
        returning, types = self._returning(table)
        return Step(
            f"delete from {table.name} where {where.quereus}{returning}",
            f"delete from {table.name} where {where.sqlite}{returning}",
            dict(queries.parameters.values),
            types=types,
        )


def _plain(sql: str, types: tuple[str, ...] = ()) -> Step:
    return Step(sql, sql, types=types)
