"""Queries over three to five tables: what the planner reorders, and what it must not.

Inner joins as JOIN and as comma lists, equalities between any of the tables, outer joins in
between, conditions on one table, ORs of conditions on several, all columns as they were written.
"""

from __future__ import annotations

from tests.differential.expressions import Expr, same
from tests.differential.query_parts import Query
from tests.differential.seeks import Seeks
from tests.differential.worlds import Column, Table


class Joining(Seeks):
    """Makes queries with several joins."""

    def query(self) -> Query:
        """A query over a few tables."""
        count = 3 + self.choices.below(3)
        tables = [self.choices.one_of(self.tables) for _ in range(count)]
        named = [(f"j{number}", table) for number, table in enumerate(tables)]
        text = f"{tables[0].name} j0"
        parts: list[Expr] = []
        where: list[str] = []
        comma = self.choices.chance(35)
        for number in range(1, count):
            ties = [self._tie(named, number) for _ in range(1 + self.choices.chance(20))]
            if self.choices.chance(8):
                ties = [f"j{number}.{tables[number].columns[0].name} is not null"]
            if comma:
                text += f", {tables[number].name} j{number}"
                where += ties
                continue
            kind = self.choices.one_of(
                ("join", "join", "join", "join", "left join", "right join", "full join")
            )
            text += f" {kind} {tables[number].name} j{number} on {' and '.join(ties)}"
        for alias, table in named:
            if self.choices.chance(60):
                where.append("({})")
                parts.append(self.condition(alias, table))
        where.append("({})")
        parts.append(
            self._either(named) if self.choices.chance(40) else self.conjunct(*self.choices.one_of(named))
        )
        columns = [
            (f"{alias}.{column.name}", column.type) for alias, table in named for column in table.columns
        ]
        if self.choices.chance(40):
            columns = [self.choices.one_of(columns) for _ in range(3)]
        names = ", ".join(name for name, _ in columns)
        types = tuple(kind for _, kind in columns)
        if self.choices.chance(30):
            first, kind = columns[0]
            body = f"select {first}, count(*) from {text} where {' and '.join(where)} group by {first}"
            made = Query(*self._sides(body, parts), (kind, "int"))
        else:
            body = f"select {names} from {text} where {' and '.join(where)}"
            made = Query(*self._sides(body, parts), types)
        return Query(made.quereus, made.sqlite, made.types, dict(self.parameters.values), made.ordered)

    def _either(self, named: list[tuple[str, Table]]) -> Expr:
        """An OR whose branches share conditions or say something of several tables."""
        pool = [self.conjunct(*self.choices.one_of(named)) for _ in range(2 + self.choices.below(3))]
        number = 1 + self.choices.below(len(named) - 1)
        pool += [Expr(tie := self._tie(named, number), tie, "bool")] * 2
        shared = [self.choices.one_of(pool)] if self.choices.chance(60) else []
        branches = []
        for _ in range(2 + self.choices.below(2)):
            branch = [self.choices.one_of(pool) for _ in range(self.choices.below(3))]
            place = self.choices.below(len(branch) + 1)
            branch = [*branch[:place], *shared, *branch[place:]] or pool[:1]
            branches.append(same(" and ".join(["{}"] * len(branch)), "bool", *branch))
        return same(" or ".join(["({})"] * len(branches)), "bool", *branches)

    @staticmethod
    def _sides(body: str, parts: list[Expr]) -> tuple[str, str]:
        whole = same(body, "", *parts)
        return whole.quereus, whole.sqlite

    def _tie(self, named: list[tuple[str, Table]], number: int) -> str:
        """An equality of the new table with an earlier one, keys preferred."""
        alias, table = named[number]
        other, earlier = self.choices.one_of(named[:number])
        pair = self._keys(earlier, table) if self.choices.chance(50) else self._pair(earlier, table)
        if pair is None:
            return f"{alias}.{table.columns[0].name} is not null"
        operator = "=" if self.choices.chance(92) else "<"
        return f"{other}.{pair[0].name} {operator} {alias}.{pair[1].name}"

    def _keys(self, left: Table, right: Table) -> tuple[Column, Column] | None:
        """Columns that lead the keys of both tables, where these can be compared."""
        leading = []
        for table in (left, right):
            name = table.key[0].split()[0]
            leading.append(next(column for column in table.columns if column.name == name))
        return (leading[0], leading[1]) if self._comparable(leading[0].type, leading[1].type) else None
