"""Queries that invite the planner to use keys and indexes: simple conditions, orders, lookups.

A condition is mostly a conjunction of comparisons of columns with constants, which access
planning turns into points, ranges and lists; an ORDER BY follows columns, often with a
LIMIT; joins look one table up for few rows of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.differential.choices import Choices
from tests.differential.expressions import Expr, Parameters, same
from tests.differential.query_parts import Query
from tests.differential.worlds import Column, Table

OPERATORS = ("=", "<", ">", "<=", ">=", "=", "=", "<>")


def literal_of(value: object) -> str:
    """A number, a truth value or a text as SQL has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


class Seeks:
    """Makes queries over tables whose columns have these values."""

    def __init__(
        self,
        choices: Choices,
        tables: Sequence[Table],
        values: Mapping[str, Sequence[object]],
        literals: Mapping[str, Sequence[str]],
        rows: Mapping[str, Sequence[tuple[object, ...]]],
        mixed: bool = False,
    ) -> None:
        self.choices = choices
        self.tables = tables
        self.values = values
        self.literals = literals
        self.rows = rows
        self.mixed = mixed
        self.parameters = Parameters()

    # -- conditions ------------------------------------------------------------------

    def constant(self, table: Table, column: Column) -> Expr:
        """A literal, a parameter or, seldom, NULL; often one that is in the table."""
        kind = column.type
        rows = self.rows[table.name]
        if rows and self.choices.chance(50):
            value = self.choices.one_of(rows)[table.columns.index(column)]
            if value is not None:
                name = self.parameters.add(value)
                return Expr(name, name, kind)
        if self.mixed and self.choices.chance(12):
            kind = self.choices.one_of(sorted(self.values))
        if self.choices.chance(4):
            return Expr("null", "null", kind)
        if kind in self.literals and self.choices.chance(50):
            text = self.choices.one_of(self.literals[kind])
            return Expr(text, text, kind)
        value = self.choices.one_of(self.values[kind])
        if kind not in self.literals and self.choices.chance(50):
            text = literal_of(value)
            return Expr(f"({text})", f"({text})", kind)
        name = self.parameters.add(value)
        return Expr(name, name, kind)

    def conjunct(self, alias: str, table: Table) -> Expr:
        """One comparison of a column."""
        column = self._column(table)
        left = Expr(f"{alias}.{column.name}", f"{alias}.{column.name}", column.type, True)
        form = self.choices.below(10)
        if form <= 4:
            operator = self.choices.one_of(OPERATORS)
            right = self.constant(table, column)
            if self.choices.chance(20):
                left, right = right, left
            return same(f"{{}} {operator} {{}}", "bool", left, right)
        if form == 5:
            return same(
                "{} between {} and {}",
                "bool",
                left,
                self.constant(table, column),
                self.constant(table, column),
            )
        if form == 6:
            items = [self.constant(table, column) for _ in range(1 + self.choices.below(4))]
            return same(f"{{}} in ({', '.join(['{}'] * len(items))})", "bool", left, *items)
        if form == 7:
            return same(f"{{}} {self.choices.one_of(('is null', 'is not null'))}", "bool", left)
        if form == 8:
            return same("{} is {}", "bool", left, self.constant(table, column))
        return same(
            "({} = {} or {} = {})",
            "bool",
            left,
            self.constant(table, column),
            left,
            self.constant(table, column),
        )

    def _column(self, table: Table) -> Column:
        if self.choices.chance(50):
            key = self.choices.one_of(table.key).split()[0]
            return next(column for column in table.columns if column.name == key)
        return self.choices.one_of(table.columns)

    def condition(self, alias: str, table: Table) -> Expr:
        """A conjunction, seldom with an OR or a NOT around."""
        parts = [self.conjunct(alias, table) for _ in range(1 + self.choices.below(3))]
        whole = same(" and ".join(["{}"] * len(parts)), "bool", *parts)
        if self.choices.chance(10):
            return same("({}) or {}", "bool", whole, self.conjunct(alias, table))
        if self.choices.chance(8):
            return same("not ({})", "bool", whole)
        return whole

    # -- queries -----------------------------------------------------------------------

    def query(self) -> Query:
        """A query of one of the forms."""
        form = self.choices.below(10)
        made = self._one_table() if form < 5 else self._two_tables() if form < 8 else self._subquery()
        return Query(made.quereus, made.sqlite, made.types, dict(self.parameters.values), made.ordered)

    def _one_table(self) -> Query:
        table = self.choices.one_of(self.tables)
        condition = (
            self.condition("a", table) if not self.choices.chance(15) else Expr("true", "true", "bool")
        )
        form = self.choices.below(6)
        types = tuple(column.type for column in table.columns)
        if form <= 3:
            head = f"select * from {table.name} a where {{}}"
            if form == 3:
                head = head.replace("select *", "select distinct *")
            return self._ordered(same(head, "", condition), types, table)
        if form == 4:
            column = self._column(table)
            text = (
                f"select min(a.{column.name}), max(a.{column.name}), count(*) from {table.name} a where {{}}"
            )
            return self._finished(same(text, "", condition), (column.type, column.type, "int"))
        keys = [self._column(table) for _ in range(1 + self.choices.below(2))]
        names = ", ".join(f"a.{key.name}" for key in keys)
        text = f"select {names}, count(*) from {table.name} a where {{}} group by {names}"
        return self._finished(same(text, "", condition), (*(key.type for key in keys), "int"))

    def _ordered(self, body: Expr, types: tuple[str, ...], table: Table) -> Query:
        """By some columns, then by all others, so that LIMIT chooses the same rows everywhere."""
        count = len(types)
        first = [self.choices.below(count) for _ in range(self.choices.below(3))]
        if self.choices.chance(40):
            names = [column.name for column in table.columns]
            first = [names.index(part.split()[0]) for part in table.key]
        limit = self.choices.one_of(("", " limit 3", " limit 1", " limit 5 offset 2", " limit 100"))
        chosen = list(dict.fromkeys(first))
        if limit:
            chosen = list(dict.fromkeys([*first, *range(count)]))
        if not chosen:
            return self._finished(body, types)
        reverse = self.choices.below(3)
        quereus, sqlite = [], []
        for place in chosen:
            direction = ("", " desc", self.choices.one_of(("", " desc")))[reverse]
            nulls = self.choices.one_of(("", "", " nulls last", " nulls first"))
            quereus.append(f"{place + 1}{direction}{nulls}")
            sqlite.append(f"{place + 1}{direction}{nulls or ' nulls first'}")
        return Query(
            f"{body.quereus} order by {', '.join(quereus)}{limit}",
            f"{body.sqlite} order by {', '.join(sqlite)}{limit}",
            types,
            ordered=tuple(chosen),
        )

    def _finished(self, body: Expr, types: tuple[str, ...]) -> Query:
        return Query(body.quereus, body.sqlite, types)

    def _pair(self, left: Table, right: Table) -> tuple[Column, Column] | None:
        pairs = [(a, b) for a in left.columns for b in right.columns if self._comparable(a.type, b.type)]
        return self.choices.one_of(pairs) if pairs else None

    def _comparable(self, left: str, right: str) -> bool:
        if left == right:
            return True
        if {left, right} == {"nocase", "rtrim"}:
            return False
        return {left, right} == {"int", "real"} or (self.mixed and self.choices.chance(15))

    def _two_tables(self) -> Query:
        left, right = self.choices.one_of(self.tables), self.choices.one_of(self.tables)
        pairs = [self._pair(left, right) for _ in range(1 + self.choices.below(2))]
        on = " and ".join(f"a.{pair[0].name} = b.{pair[1].name}" for pair in pairs if pair)
        kind = self.choices.one_of(("join", "left join", "join", "left join", "right join", "full join"))
        where = [self.condition("a", left)]
        if self.choices.chance(30):
            where.append(self.condition("b", right))
        columns = [f"a.{c.name}" for c in left.columns] + [f"b.{c.name}" for c in right.columns]
        types = tuple(column.type for column in (*left.columns, *right.columns))
        on = on or f"a.{left.columns[0].name} is not null"
        text = f"select {', '.join(columns)} from {left.name} a {kind} {right.name} b on {on}"
        text += " where " + " and ".join(["({})"] * len(where))
        return self._finished(same(text, "", *where), types)

    def _subquery(self) -> Query:
        left, right = self.choices.one_of(self.tables), self.choices.one_of(self.tables)
        pair = self._pair(left, right)
        types = tuple(column.type for column in left.columns)
        if pair is None:
            return self._one_table()
        outer, inner = pair
        where = [self.condition("a", left), self.condition("b", right)]
        forms = (
            f"exists (select 1 from {right.name} b where b.{inner.name} = a.{outer.name} and ({{}}))",
            f"not exists (select 1 from {right.name} b where b.{inner.name} = a.{outer.name} and ({{}}))",
            f"a.{outer.name} in (select b.{inner.name} from {right.name} b where {{}})",
            f"a.{outer.name} not in (select b.{inner.name} from {right.name} b where {{}})",
            f"(select count(*) from {right.name} b where b.{inner.name} = a.{outer.name} and ({{}})) > 0",
            f"(select count(*) from {right.name} b where b.{inner.name} < a.{outer.name} and ({{}})) > 1",
        )
        text = f"select * from {left.name} a where ({{}}) and {self.choices.one_of(forms)}"
        return self._finished(same(text, "", *where), types)
