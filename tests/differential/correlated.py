"""Queries whose subqueries depend on the outer row, in every place where one may stand.

The planner turns many of them into joins; each form here has a twin that it must leave alone (another
operator than ``=``, NULL on a side, a LIMIT, an outer column in a place that no join can reach).
"""

from __future__ import annotations

from tests.differential.expressions import Expr, same
from tests.differential.query_parts import Query
from tests.differential.seeks import Seeks
from tests.differential.worlds import Column, Table


class Correlated(Seeks):
    """Makes queries with one or two correlated subqueries."""

    def query(self) -> Query:
        """A query of one of the forms."""
        table = self.choices.one_of(self.tables)
        tests = [self._test("a", table, depth=1) for _ in range(1 + self.choices.below(2))]
        if self.choices.chance(40):
            tests.append(self.condition("a", table))
        types = [column.type for column in table.columns]
        items: list[Expr] = []
        while self.choices.chance(40) and len(items) < 2:
            items.append(self._scalar("a", table))
        columns = [f"a.{column.name}" for column in table.columns]
        columns += [f"{{}} as n{number}" for number in range(len(items))]
        form = self.choices.below(10)
        if form == 0 and not items:
            key = self.choices.one_of(table.columns)
            text = f"select a.{key.name}, count(*) from {table.name} a where {self._all(tests)}"
            text += f" group by a.{key.name}"
            made = self._finished(same(text, "", *tests), (key.type, "int"))
        else:
            text = f"select {', '.join(columns)} from {table.name} a where {self._all(tests)}"
            made = self._finished(same(text, "", *items, *tests), (*types, *["any"] * len(items)))
        return Query(made.quereus, made.sqlite, made.types, dict(self.parameters.values), made.ordered)

    def _all(self, tests: list[Expr]) -> str:
        word = " or " if self.choices.chance(15) else " and "
        return word.join(["({})"] * len(tests))

    def _tie(self, outer: str, table: Table, inner: str, other: Table) -> str:
        """The correlation, mostly an equality of columns of one type."""
        pair = self._pair(table, other)
        if pair is None:
            return f"{outer}.{table.columns[0].name} is not null"
        mine, theirs = pair
        operator = self.choices.one_of(("=", "=", "=", "=", "<", "is"))
        left, right = f"{outer}.{mine.name}", f"{inner}.{theirs.name}"
        if mine.type == theirs.type == "int" and self.choices.chance(10):
            left = f"{left} + 1"
        tie = f"{right} {operator} {left}" if self.choices.chance(50) else f"{left} {operator} {right}"
        if self.choices.chance(20):
            more = self._tie(outer, table, inner, other)
            return f"{tie} and {more}"
        return tie

    def _where(self, outer: str, table: Table, inner: str, other: Table, depth: int) -> Expr:
        parts = [Expr(tie := self._tie(outer, table, inner, other), tie, "bool")]
        if self.choices.chance(50):
            parts.append(self.conjunct(inner, other))
        if self.choices.chance(10):
            parts.append(self.conjunct(outer, table))
        if depth and self.choices.chance(20):
            parts.append(self._test(inner, other, depth - 1))
        return same(" and ".join(["{}"] * len(parts)), "bool", *parts)

    def _source(self, outer: str, table: Table, inner: str, other: Table) -> str:
        """The subquery's FROM: the table, or a join with another one."""
        if self.choices.chance(80):
            return f"{other.name} {inner}"
        third = self.choices.one_of(self.tables)
        pair = self._pair(other, third)
        if pair is None:
            return f"{other.name} {inner}"
        kind = self.choices.one_of(("join", "left join"))
        on = f"{inner}.{pair[0].name} = {inner}j.{pair[1].name}"
        return f"{other.name} {inner} {kind} {third.name} {inner}j on {on}"

    def _test(self, outer: str, table: Table, depth: int) -> Expr:
        """EXISTS, IN, or a comparison with a scalar subquery."""
        other = self.choices.one_of(self.tables)
        inner = outer + "b"
        where = self._where(outer, table, inner, other, depth)
        source = self._source(outer, table, inner, other)
        form = self.choices.below(10)
        negation = "not " if self.choices.chance(45) else ""
        if form <= 2:
            limit = " limit 1" if self.choices.chance(15) else ""
            return same(f"{negation}exists (select 1 from {source} where {{}}{limit})", "bool", where)
        pair = self._pair(table, other)
        if form <= 6 and pair is not None:
            mine, theirs = pair
            distinct = "distinct " if self.choices.chance(15) else ""
            text = f"{outer}.{mine.name} {negation}in (select {distinct}{inner}.{theirs.name} from {source}"
            if self.choices.chance(20):
                condition = self.condition(inner, other)
                return same(f"{text} where {{}})", "bool", condition)
            return same(f"{text} where {{}})", "bool", where)
        number = self.choices.below(3)
        operator = self.choices.one_of(("=", ">", "<="))
        call = self._call(inner, other)
        return same(f"(select {call} from {source} where {{}}) {operator} {number}", "bool", where)

    def _call(self, inner: str, other: Table) -> str:
        numbers = [column.name for column in other.columns if column.type == "int"]
        if not numbers or self.choices.chance(40):
            return "count(*)"
        function = self.choices.one_of(("sum", "min", "max", "count", "total", "avg"))
        call = f"{function}({inner}.{self.choices.one_of(numbers)})"
        return f"{call} + 1" if self.choices.chance(20) else call

    def _scalar(self, outer: str, table: Table) -> Expr:
        """A scalar subquery for the select list: an aggregate, or the row of a key."""
        other = self.choices.one_of(self.tables)
        inner = "s"
        if self.choices.chance(30) and (found := self._row(outer, table, other)) is not None:
            return found
        where = self._where(outer, table, inner, other, 1)
        source = self._source(outer, table, inner, other)
        made = same(f"(select {self._call(inner, other)} from {source} where {{}})", "any", where)
        if self.choices.chance(15):
            return same("coalesce({}, -1)", "any", made)
        return made

    def _row(self, outer: str, table: Table, other: Table) -> Expr | None:
        if len(other.key) != 1:
            return None
        key = next(column for column in other.columns if column.name == other.key[0].split()[0])
        mine = [column for column in table.columns if column.type == key.type]
        if not mine:
            return None
        wanted: Column = self.choices.one_of([column for column in other.columns if column.type == "int"])
        tie = f"s.{key.name} = {outer}.{self.choices.one_of(mine).name}"
        return same(
            f"(select s.{wanted.name} from {other.name} s where {tie} and {{}})",
            "any",
            self.conjunct("s", other),
        )
