"""Random queries in both dialects.

:class:`Queries` makes a query as a :class:`Query`: its text for Quereus and for SQLite,
the types of its columns, its parameters and what of the order of its rows is promised.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from tests.differential.choices import Choices
from tests.differential.expressions import PLAIN_TYPES, Expr, Expressions, Parameters, same
from tests.differential.query_parts import Parts, Query, Relation, Source
from tests.differential.worlds import TABLES, Table

OUTPUT_TYPES = ("int", "text", "real", "bool", "nocase", "any")


class Queries:
    """Makes queries over the tables of a world."""

    expressions = Expressions

    def __init__(self, choices: Choices, tables: Sequence[Table] = TABLES, size: int = 3) -> None:
        self.choices = choices
        self.tables = tables
        self.size = size
        self.parameters = Parameters()
        self._aliases = itertools.count(1)
        self._common: list[Relation] = []

    def query(self) -> Query:
        """A whole query, perhaps with WITH, ORDER BY and LIMIT."""
        depth = self.choices.below(self.size) + 1
        quereus, sqlite = self._with(depth)
        body = self.compound(depth) if self.choices.chance(20) else self.select(depth)
        body = self._finish(body)
        return Query(
            quereus + body.quereus,
            sqlite + body.sqlite,
            body.types,
            dict(self.parameters.values),
            body.ordered,
        )

    # -- with --------------------------------------------------------------------

    def _with(self, depth: int) -> tuple[str, str]:
        if not self.choices.chance(20):
            return "", ""
        texts = []
        recursive = False
        for _ in range(1 + self.choices.below(2)):
            name = f"c{next(self._aliases)}"
            if self.choices.chance(40):
                recursive = True
                types, quereus, sqlite = self._recursion(name)
            else:
                made = self.compound(1) if self.choices.chance(20) else self.select(max(0, depth - 1))
                types, quereus, sqlite = made.types, made.quereus, made.sqlite
            names = [f"{name}_{index}" for index in range(len(types))]
            hint = self.choices.one_of(("", "", "materialized ", "not materialized "))
            head = f"{name} ({', '.join(names)}) as {hint}"
            texts.append((f"{head}({quereus})", f"{head}({sqlite})"))
            self._common.append(Relation(name, tuple(zip(names, types, strict=True))))
        word = "with recursive " if recursive else "with "
        return word + ", ".join(q for q, _ in texts) + " ", word + ", ".join(s for _, s in texts) + " "

    def _recursion(self, name: str) -> tuple[tuple[str, ...], str, str]:
        word = self.choices.one_of(("union", "union all"))
        limit = self.choices.one_of(("3", "5", "8"))
        form = self.choices.below(3)
        if form == 0:
            text = f"select 1 {word} select {name}_0 + 1 from {name} where {name}_0 < {limit}"
            return ("int",), text, text
        if form == 1:
            seed = self.select(0, ("int", "text"), plain=True)
            tail = (
                f" {word} select {name}_0 + 1, {name}_1 || 'a' from {name} where {name}_0 < {limit}"
                f" and length({name}_1) < 5"
            )
            return ("int", "text"), seed.quereus + tail, seed.sqlite + tail
        tail = (
            f"select id, 0 from t1 union select t1.a, {name}_1 + 1 from t1"
            f" join {name} on t1.id = {name}_0 where {name}_1 < {limit}"
        )
        return ("int", "int"), tail, tail

    # -- order and limit -----------------------------------------------------------

    def _finish(self, body: Query) -> Query:
        if not self.choices.chance(45):
            return body
        if self.choices.chance(60):
            return self._total_order(body)
        chosen = [index for index in range(len(body.types)) if self.choices.chance(60)]
        return self._order(body, chosen) if chosen else body

    def _order(self, body: Query, chosen: Sequence[int]) -> Query:
        quereus, sqlite = [], []
        for index in chosen:
            direction = self.choices.one_of(("", " asc", " desc"))
            nulls = self.choices.one_of(("", " nulls first", " nulls last"))
            quereus.append(f"{index + 1}{direction}{nulls}")
            sqlite.append(f"{index + 1}{direction}{nulls or ' nulls first'}")
        return Query(
            f"{body.quereus} order by {', '.join(quereus)}",
            f"{body.sqlite} order by {', '.join(sqlite)}",
            body.types,
            {},
            tuple(chosen),
        )

    def _total_order(self, body: Query) -> Query:
        """By all columns, so that LIMIT chooses the same rows everywhere."""
        order = list(range(len(body.types)))
        first = self.choices.below(len(order))
        ordered = self._order(body, order[first:] + order[:first])
        limit = ""
        if self.choices.chance(70):
            limit = f" limit {self.choices.one_of((3, 1, 0, 5, 100))}"
            if self.choices.chance(40):
                limit += f" offset {self.choices.one_of((1, 0, 2, 7))}"
        return Query(ordered.quereus + limit, ordered.sqlite + limit, body.types, {}, ordered.ordered)

    # -- set operations --------------------------------------------------------------

    def compound(self, depth: int, types: Sequence[str] | None = None, outer: Sequence[Expr] = ()) -> Query:
        """Two queries under a set operator."""
        chosen = self._types(types)
        chosen = tuple("int" if kind == "any" else kind for kind in chosen) if types is None else chosen
        operator = self.choices.one_of(("union", "union all", "intersect", "except"))
        left = self.select(max(0, depth - 1), chosen, outer)
        right = self.select(max(0, depth - 1), chosen, outer)
        if self.choices.chance(30):
            third = self.select(0, chosen, outer)
            second = self.choices.one_of(("union", "union all", "intersect", "except"))
            return Query(
                f"({left.quereus} {operator} {right.quereus}) {second} {third.quereus}",
                f"select * from ({left.sqlite} {operator} {right.sqlite}) {second} {third.sqlite}",
                chosen,
            )
        return Query(
            f"{left.quereus} {operator} {right.quereus}", f"{left.sqlite} {operator} {right.sqlite}", chosen
        )

    # -- select ----------------------------------------------------------------------

    def _types(self, types: Sequence[str] | None) -> tuple[str, ...]:
        if types is not None:
            return tuple(types)
        return tuple(self.choices.one_of(OUTPUT_TYPES) for _ in range(1 + self.choices.below(3)))

    def select(
        self,
        depth: int,
        types: Sequence[str] | None = None,
        outer: Sequence[Expr] = (),
        plain: bool = False,
    ) -> Query:
        """A SELECT with columns of these types; it may read columns of the queries around it."""
        chosen = self._types(types)
        source = self.source(depth, outer)
        form = 0 if plain else self.choices.below(10)
        if form >= 8:
            return self._grouped(depth, chosen, source, outer)
        if form == 7:
            return self._aggregated(depth, chosen, source, outer)
        if form == 6 and types is None:
            return self._windowed(depth, chosen, source, outer)
        parts = self.parts(depth, chosen, source, outer)
        distinct = "distinct " if self.choices.chance(15) else ""
        return Query(
            _select(distinct, [item.quereus for item in parts.items], source.quereus, _where(parts.where, 0)),
            _select(distinct, [item.sqlite for item in parts.items], source.sqlite, _where(parts.where, 1)),
            tuple(item.type for item in parts.items),
        )

    def parts(
        self, depth: int, types: Sequence[str], source: Source, outer: Sequence[Expr], where: bool = True
    ) -> Parts:
        """Select items and a condition over a source."""
        maker = self._expressions(source.columns, outer, depth)
        items = [self._item(maker, kind, depth) for kind in types]
        condition = maker.make("bool", depth + 1) if where and self.choices.chance(70) else None
        return Parts(tuple(items), source, condition)

    def _item(self, maker: Expressions, kind: str, depth: int) -> Expr:
        if kind in ("nocase", "any"):
            columns = [expr for expr in maker.pool if expr.type == kind and expr.column]
            if columns:
                return self.choices.one_of(columns)
            if kind == "nocase":
                return Expr("'a' collate nocase", "'a' collate nocase", "nocase")
            kind = "int"
        return maker.make(kind, depth)

    def _expressions(
        self, columns: Sequence[Expr], outer: Sequence[Expr], depth: int, subqueries: bool = True
    ) -> Expressions:
        # A column that an inner query may read: grouped queries offer only their keys.
        readable = [*columns, *outer] if not outer or self.choices.chance(70) else list(columns)
        # (An unqualified name would mean another column inside.)
        visible = [expr for expr in [*columns, *outer] if expr.column and "." in expr.sqlite]

        def subquery(
            form: str, kinds: Sequence[str], depth: int, operands: Sequence[Expr] = ()
        ) -> Expr | None:
            return self._subquery(form, kinds, min(depth, 1), visible, operands)

        return self.expressions(
            self.choices, readable, self.parameters, subquery if subqueries and depth > 0 else None
        )

    def _subquery(
        self, form: str, kinds: Sequence[str], depth: int, outer: Sequence[Expr], operands: Sequence[Expr]
    ) -> Expr | None:
        if form == "scalar":
            inner = self._one_row(kinds[0], depth, outer)
            return Expr(f"({inner.quereus})", f"({inner.sqlite})", kinds[0])
        if form == "exists":
            inner = self.select(max(0, depth - 1), None, outer)
            word = self.choices.one_of(("exists", "not exists"))
            return Expr(f"({word} ({inner.quereus}))", f"({word} ({inner.sqlite}))", "bool")
        inner = (
            self.compound(depth, kinds, outer)
            if self.choices.chance(10)
            else self.select(max(0, depth - 1), kinds, outer)
        )
        word = self.choices.one_of(("in", "not in"))
        left = [", ".join(texts) for texts in zip(*((o.quereus, o.sqlite) for o in operands), strict=True)]
        if len(operands) > 1:
            left = [f"({text})" for text in left]
        return Expr(f"({left[0]} {word} ({inner.quereus}))", f"({left[1]} {word} ({inner.sqlite}))", "bool")

    def _one_row(self, kind: str, depth: int, outer: Sequence[Expr]) -> Query:
        """A query of at most one row: an aggregate, or the first row of an order."""
        if self.choices.chance(50):
            return self._aggregated(depth, (kind,), self.source(0, outer), outer, grouped=False)
        body = self.select(0, (kind,), outer, plain=True)
        direction = self.choices.one_of((" asc", " desc"))
        return Query(
            f"{body.quereus} order by 1{direction} limit 1",
            f"{body.sqlite} order by 1{direction} nulls first limit 1",
            (kind,),
        )

    # -- from ------------------------------------------------------------------------

    def source(self, depth: int, outer: Sequence[Expr] = ()) -> Source:
        """A FROM clause."""
        made = self._primary(depth)
        joins = self.choices.one_of((0, 0, 0, 1, 1, 2)) if depth > 0 else self.choices.one_of((0, 0, 0, 0, 1))
        for _ in range(joins):
            made = self._join(made, self._primary(depth - 1), depth, outer)
        # A comma binds looser than JOIN here and as tight as it in SQLite, so it comes last.
        if depth > 0 and self.choices.chance(10):
            other = self._primary(0)
            columns = (*made.columns, *other.columns)
            columns = tuple(column for column in columns if "." in column.sqlite)
            made = Source(f"{made.quereus}, {other.quereus}", f"{made.sqlite}, {other.sqlite}", columns)
        return made

    def _primary(self, depth: int) -> Source:
        alias = f"a{next(self._aliases)}"
        if self._common and self.choices.chance(40):
            relation = self.choices.one_of(self._common)
            columns = tuple(
                Expr(f"{alias}.{name}", f"{alias}.{name}", kind, True) for name, kind in relation.columns
            )
            return Source(f"{relation.name} {alias}", f"{relation.name} {alias}", columns)
        if depth > 0 and self.choices.chance(15):
            inner = self._finish(self.compound(1) if self.choices.chance(25) else self.select(depth - 1))
            names = [f"d{index}" for index in range(len(inner.types))]
            columns = tuple(
                Expr(f"{alias}.{name}", f"{alias}.{name}", kind, True)
                for name, kind in zip(names, inner.types, strict=True)
            )
            outputs = ", ".join(names)
            # SQLite has no column aliases of a derived table, but a common table inside it has.
            sqlite = f"(with {alias}_ ({outputs}) as ({inner.sqlite}) select * from {alias}_) {alias}"
            return Source(f"({inner.quereus}) {alias} ({outputs})", sqlite, columns)
        table = self.choices.one_of(self.tables)
        columns = tuple(
            Expr(f"{alias}.{column.name}", f"{alias}.{column.name}", column.type, True)
            for column in table.columns
        )
        return Source(f"{table.name} {alias}", f"{table.name} {alias}", columns)

    def _join(self, left: Source, right: Source, depth: int, outer: Sequence[Expr]) -> Source:
        # A merged name is ambiguous beside another column of that name.
        names = {column.sqlite.rpartition(".")[2] for column in right.columns}
        left = replace(
            left, columns=tuple(c for c in left.columns if "." in c.sqlite or c.sqlite not in names)
        )
        columns = (*left.columns, *right.columns)
        kind = self.choices.one_of(
            ("join", "left join", "inner join", "full join", "right join", "cross join", "left outer join")
        )
        if kind == "cross join":
            return Source(
                f"{left.quereus} {kind} {right.quereus}", f"{left.sqlite} {kind} {right.sqlite}", columns
            )
        if self.choices.chance(15) and (merged := self._using(left, right, kind)) is not None:
            return merged
        condition = self._join_condition(left, right, depth, outer)
        return Source(
            f"{left.quereus} {kind} {right.quereus} on {condition.quereus}",
            f"{left.sqlite} {kind} {right.sqlite} on {condition.sqlite}",
            columns,
        )

    def _using(self, left: Source, right: Source, kind: str) -> Source | None:
        """A join over the columns that have the same name, which may then be read without qualifier."""
        names = [[column.sqlite.rpartition(".")[2] for column in source.columns] for source in (left, right)]
        common = [
            name
            for name in names[0]
            if names[0].count(name) == 1 and names[1].count(name) == 1 and "." in left.columns[0].sqlite
        ]
        if not common or any("." not in column.sqlite for column in (*left.columns, *right.columns)):
            return None
        by_name = {column.sqlite.rpartition(".")[2]: column for column in left.columns}
        if self.choices.chance(30) and len(common) == len(set(names[0]) & set(names[1])):
            word, clause = "natural ", ""
        else:
            common = common[: 1 + self.choices.below(2)]
            word, clause = "", f" using ({', '.join(common)})"
        merged = tuple(Expr(name, name, by_name[name].type, True) for name in common)
        return Source(
            f"{left.quereus} {word}{kind} {right.quereus}{clause}",
            f"{left.sqlite} {word}{kind} {right.sqlite}{clause}",
            (*merged, *left.columns, *right.columns),
        )

    def _join_condition(self, left: Source, right: Source, depth: int, outer: Sequence[Expr]) -> Expr:
        pairs = [
            (a, b)
            for a in left.columns
            for b in right.columns
            if a.type == b.type or {a.type, b.type} == {"int", "real"}
        ]
        maker = self._expressions((*left.columns, *right.columns), outer, depth, subqueries=False)
        if not pairs or self.choices.chance(15):
            # A constant condition under FULL JOIN loses rows in SQLite.
            condition = maker.make("bool", 1)
            if " full " not in left.sqlite and _reads(condition, (*left.columns, *right.columns)):
                return condition
            pairs = pairs or [(left.columns[0], left.columns[0])]
        equalities = [
            same("({} = {})", "bool", *self.choices.one_of(pairs)) for _ in range(1 + self.choices.below(2))
        ]
        if self.choices.chance(25) and _reads(extra := maker.make("bool", 1), maker.pool):
            equalities.append(extra)
        return same(" and ".join(["{}"] * len(equalities)), "bool", *equalities)

    # -- aggregates ------------------------------------------------------------------

    def _aggregate(self, kind: str, maker: Expressions, depth: int) -> Expr:
        """An aggregate whose result is of a type."""
        own = [expr for expr in maker.pool if expr.column]
        local = self.expressions(self.choices, own, self.parameters)
        if kind == "int":
            form = self.choices.below(6)
            if form == 0:
                made = Expr("count(*)", "count(*)", "int")
            elif form <= 2:
                argument = self._argument(local, self.choices.one_of(PLAIN_TYPES), depth)
                distinct = "distinct " if self.choices.chance(30) else ""
                made = same(f"count({distinct}{{}})", "int", argument)
            else:
                function = self.choices.one_of(("sum", "min", "max"))
                distinct = "distinct " if self.choices.chance(20) else ""
                made = same(f"{function}({distinct}{{}})", "int", self._argument(local, "int", depth))
        elif kind == "real":
            function = self.choices.one_of(("sum", "avg", "min", "max", "total"))
            over = "real" if function in ("min", "max", "sum") else self.choices.one_of(("real", "int"))
            made = same(f"{function}({{}})", "real", self._argument(local, over, depth))
        elif kind == "nocase":
            # An extremum has the collation of its argument here and none in SQLite.
            return Expr("'a' collate nocase", "'a' collate nocase", "nocase")
        else:
            kind = "text" if kind == "any" else kind
            function = self.choices.one_of(("min", "max"))
            made = same(f"{function}({{}})", kind, self._argument(local, kind, depth))
        if self.choices.chance(15):
            condition = local.make("bool", 1)
            return same("{} filter (where {})", made.type, made, condition)
        return made

    def _argument(self, local: Expressions, kind: str, depth: int) -> Expr:
        """An argument that reads at least one column of the query itself.

        SQLite takes an aggregate over outer columns alone for one of the outer query.
        """
        columns = [expr for expr in local.pool if expr.type == kind]
        made = local.make(kind, min(depth, 1))
        if _reads(made, local.pool):
            return made
        return self.choices.one_of(columns) if columns else made

    def _aggregated(
        self, depth: int, types: Sequence[str], source: Source, outer: Sequence[Expr], grouped: bool = True
    ) -> Query:
        """Aggregates over one group."""
        local = self._expressions(source.columns, (), depth, subqueries=False)
        aggregates = [self._aggregate(kind, local, depth) for kind in types]
        pool = [expr for expr in aggregates if expr.type not in ("nocase", "any")]
        above = self.expressions(self.choices, pool, self.parameters)
        items = [
            above.make(expr.type, 1) if self.choices.chance(25) and expr in pool else expr
            for expr in aggregates
        ]
        where = self._condition(source, outer, depth)
        having = above.make("bool", 1) if grouped and pool and self.choices.chance(15) else None
        # Without an aggregate of its own SQLite refuses HAVING, and would not group.
        if not any(aggregate.sqlite in item.sqlite for item in items for aggregate in aggregates):
            items[0] = aggregates[0]
        texts = []
        for side in (0, 1):
            text = _select(
                "", [_side(item, side) for item in items], _side(source, side), _where(where, side)
            )
            texts.append(text + (f" having {_side(having, side)}" if having else ""))
        return Query(texts[0], texts[1], tuple(item.type for item in items))

    def _condition(self, source: Source, outer: Sequence[Expr], depth: int) -> Expr | None:
        maker = self._expressions(source.columns, outer, depth)
        return maker.make("bool", depth + 1) if self.choices.chance(55) else None

    def _grouped(self, depth: int, types: Sequence[str], source: Source, outer: Sequence[Expr]) -> Query:
        """GROUP BY: items are keys, aggregates and expressions of these."""
        local = self._expressions(source.columns, (), depth, subqueries=False)
        keys: list[Expr] = []
        for _ in range(1 + self.choices.below(2)):
            if self.choices.chance(70):
                keys.append(self.choices.one_of(source.columns))
            else:
                key = local.make(self.choices.one_of(PLAIN_TYPES), 1)
                if _reads(key, source.columns):
                    keys.append(key)
        keys = keys or [source.columns[0]]
        aggregates = [self._aggregate(kind, local, depth) for kind in types]
        pool = [expr for expr in [*keys, *aggregates] if expr.type not in ("nocase", "any")]
        above = self.expressions(self.choices, pool, self.parameters)
        items = []
        for kind, aggregate in zip(types, aggregates, strict=True):
            same_type = [key for key in keys if key.type == kind]
            if same_type and self.choices.chance(50):
                items.append(self.choices.one_of(same_type))
            elif kind not in ("nocase", "any") and aggregate.type == kind and self.choices.chance(25):
                items.append(above.make(kind, 1))
            else:
                items.append(aggregate)
        where = self._condition(source, outer, depth)
        having = above.make("bool", 2) if self.choices.chance(30) else None
        distinct = "distinct " if self.choices.chance(8) else ""
        texts = []
        for side in (0, 1):
            text = _select(
                distinct, [_side(item, side) for item in items], _side(source, side), _where(where, side)
            )
            text += " group by " + ", ".join(_side(key, side) for key in keys)
            texts.append(text + (f" having {_side(having, side)}" if having else ""))
        return Query(texts[0], texts[1], tuple(item.type for item in items))

    # -- windows ---------------------------------------------------------------------

    def _windowed(self, depth: int, types: Sequence[str], source: Source, outer: Sequence[Expr]) -> Query:
        """Window functions over peers, so that the order within a peer group does not matter."""
        parts = self.parts(depth, types, source, outer)
        local = self.expressions(self.choices, source.columns, self.parameters)
        windows = [self._window(local, source) for _ in range(1 + self.choices.below(2))]
        items = [*parts.items, *windows]
        return Query(
            _select("", [item.quereus for item in items], source.quereus, _where(parts.where, 0)),
            _select("", [item.sqlite for item in items], source.sqlite, _where(parts.where, 1)),
            tuple(item.type for item in items),
        )

    def _window(self, local: Expressions, source: Source) -> Expr:
        columns = list(source.columns)
        partition = ""
        keys: list[Expr] = []
        if self.choices.chance(50):
            keys.append(self.choices.one_of(columns))
            partition = f"partition by {keys[0].sqlite} "
        every = self.choices.chance(50)
        chosen = list(columns) if every else [self.choices.one_of(columns)]
        quereus_terms, sqlite_terms = [], []
        for column in chosen:
            direction = self.choices.one_of(("", " desc"))
            nulls = self.choices.one_of(("", " nulls last"))
            quereus_terms.append(f"{column.quereus}{direction}{nulls}")
            sqlite_terms.append(f"{column.sqlite}{direction}{nulls or ' nulls first'}")
        kind = self.choices.one_of(("int", "real"))
        argument = local.make(kind, 1) if self.choices.chance(50) else local.leaf(kind)
        # Rows that agree in all columns are interchangeable, so their order does not matter.
        if every and self.choices.chance(50):
            template, kind = self.choices.one_of(
                (
                    ("row_number()", "int"),
                    ("ntile(3)", "int"),
                    ("lag({})", kind),
                    ("lead({}, 2)", kind),
                    ("lag({}, 1, 0)", kind),
                    ("sum({}) rows", kind),
                    ("min({}) rows", kind),
                    ("count({}) rows", "int"),
                    ("first_value({}) rows", kind),
                    ("last_value({}) rows", kind),
                    ("nth_value({}, 2) rows", kind),
                )
            )
        else:
            template, kind = self.choices.one_of(
                (
                    ("rank()", "int"),
                    ("dense_rank()", "int"),
                    ("sum({})", kind),
                    ("max({})", kind),
                    ("count({})", "int"),
                    ("avg({})", "real"),
                    ("percent_rank()", "real"),
                    ("cume_dist()", "real"),
                    ("sum({}) groups", kind),
                    ("count(*) groups", "int"),
                )
            )
        frame = ""
        for unit in ("rows", "groups"):
            if template.endswith(" " + unit):
                template = template.removesuffix(" " + unit)
                frame = f" {unit} {self._frame(unit)}"
        made = same(template, kind, *([argument] if "{}" in template else []))
        over = [
            f" over ({partition}order by {', '.join(terms)}{frame})"
            for terms in (quereus_terms, sqlite_terms)
        ]
        return Expr(made.quereus + over[0], made.sqlite + over[1], kind)

    def _frame(self, unit: str) -> str:
        start = self.choices.one_of(
            ("unbounded preceding", "1 preceding", "current row", "2 preceding", "1 following")
        )
        end = self.choices.one_of(("current row", "unbounded following", "1 following", "2 following"))
        if start == "1 following" and end == "current row":
            end = "2 following"
        exclude = "" if unit == "rows" else self.choices.one_of(("", " exclude group", " exclude ties"))
        return f"between {start} and {end}{exclude}"


def _reads(expression: Expr, columns: Sequence[Expr]) -> bool:
    """Whether one of the columns stands in the expression."""
    return any(column.sqlite in expression.sqlite for column in columns)


def _side(thing: Expr | Source, side: int) -> str:
    return thing.sqlite if side else thing.quereus


def _where(condition: Expr | None, side: int) -> str:
    return "" if condition is None else f" where {_side(condition, side)}"


def _select(distinct: str, items: Sequence[str], source: str, where: str) -> str:
    return f"select {distinct}{', '.join(items)} from {source}{where}"
