"""Random queries with what only Quereus has, for comparisons with itself under other plans."""

from __future__ import annotations

from collections.abc import Sequence

from tests.differential.expressions import _MAKERS, Expr, Expressions, same
from tests.differential.queries import Queries
from tests.differential.query_parts import Query, Source


class ExtendedExpressions(Expressions):
    """Expressions that SQLite does not have, now and then."""

    def make(self, kind: str, depth: int) -> Expr:
        if depth > 0 and kind in _EXTENSIONS and self.choices.chance(15):
            made = self.choices.one_of(_EXTENSIONS[kind])(self, depth - 1)
            if made is not None:
                return made
        return super().make(kind, depth)

    def _quantified(self, depth: int) -> Expr | None:
        if self.subquery is None:
            return None
        kind = self.choices.one_of(("int", "text", "real"))
        left = self.make(kind, depth)
        operator = self.choices.one_of(("=", "<", ">", "<=", ">=", "<>"))
        word = self.choices.one_of(("any", "all", "some"))
        inner = self.subquery("rows", [kind], depth)
        return None if inner is None else same(f"({{}} {operator} {word} {{}})", "bool", left, inner)

    def _xor(self, depth: int) -> Expr:
        return same("({} xor {})", "bool", self.make("bool", depth), self.make("bool", depth))

    def _ilike(self, depth: int) -> Expr:
        pattern = self.choices.one_of(("'a%'", "'%B'", "'a'", "'_'"))
        word = self.choices.one_of(("ilike", "not ilike"))
        return same(f"({{}} {word} {pattern})", "bool", self.make("text", depth))

    def _extremum(self, kind: str, depth: int) -> Expr:
        function = self.choices.one_of(("greatest", "least"))
        return same(f"{function}({{}}, {{}})", kind, self.make(kind, depth), self.make(kind, depth))

    def _json(self, depth: int) -> Expr:
        parts = [self.make("text", depth), self.make("int", depth)]
        path = self.choices.one_of(("$.a", "$.b", "$.c"))
        return same(f"(json_object('a', {{}}, 'b', {{}}) ->> '{path}')", "text", *parts)

    def _date(self, depth: int) -> Expr:
        return same("date('2024-01-31', '+' || abs({}) || ' day')", "text", self.make("int", depth))


_EXTENSIONS = {
    "bool": [ExtendedExpressions._quantified, ExtendedExpressions._xor, ExtendedExpressions._ilike],
    "int": [lambda maker, depth: maker._extremum("int", depth)],
    "real": [lambda maker, depth: maker._extremum("real", depth)],
    "text": [
        lambda maker, depth: maker._extremum("text", depth),
        ExtendedExpressions._json,
        ExtendedExpressions._date,
    ],
}
assert set(_EXTENSIONS) <= set(_MAKERS)


class ExtendedQueries(Queries):
    """Queries with lateral joins, grouping sets, QUALIFY, match flags and the ALL set operations."""

    expressions = ExtendedExpressions

    def select(
        self,
        depth: int,
        types: Sequence[str] | None = None,
        outer: Sequence[Expr] = (),
        plain: bool = False,
    ) -> Query:
        if plain or not self.choices.chance(25):
            return super().select(depth, types, outer, plain)
        chosen = self._types(types)
        form = self.choices.below(3)
        if form == 0:
            return self._grouping_sets(depth, chosen, outer)
        if form == 1:
            return self._qualified(depth, chosen, outer)
        return self._flagged(depth, chosen, outer)

    def _subquery(
        self, form: str, kinds: Sequence[str], depth: int, outer: Sequence[Expr], operands: Sequence[Expr]
    ) -> Expr | None:
        if form != "rows":
            return super()._subquery(form, kinds, depth, outer, operands)
        inner = self.select(max(0, depth - 1), kinds, outer)
        return Expr(f"({inner.quereus})", "", kinds[0])

    def compound(self, depth: int, types: Sequence[str] | None = None, outer: Sequence[Expr] = ()) -> Query:
        made = super().compound(depth, types, outer)
        if self.choices.chance(40):
            left, right = self.select(0, made.types, outer), self.select(0, made.types, outer)
            operator = self.choices.one_of(("except all", "intersect all", "diff"))
            return Query(f"{left.quereus} {operator} {right.quereus}", "", made.types)
        return made

    def _join(self, left: Source, right: Source, depth: int, outer: Sequence[Expr]) -> Source:
        if not self.choices.chance(15):
            return super()._join(left, right, depth, outer)
        alias = f"a{next(self._aliases)}"
        inner = self.select(max(0, depth - 1), None, left.columns)
        names = [f"l{index}" for index in range(len(inner.types))]
        columns = tuple(
            Expr(f"{alias}.{name}", f"{alias}.{name}", kind, True)
            for name, kind in zip(names, inner.types, strict=True)
        )
        head = self.choices.one_of(("join lateral", "left join lateral", "cross join lateral"))
        tail = "" if head.startswith("cross") else " on true"
        text = f"{left.quereus} {head} ({inner.quereus}) {alias} ({', '.join(names)}){tail}"
        return Source(text, text, (*left.columns, *columns))

    def _grouping_sets(self, depth: int, types: Sequence[str], outer: Sequence[Expr]) -> Query:
        source = self.source(depth, outer)
        local = self._expressions(source.columns, (), depth, subqueries=False)
        keys = [self.choices.one_of(source.columns) for _ in range(2 + self.choices.below(2))]
        keys = list(dict.fromkeys(keys))
        texts = [key.quereus for key in keys]
        form = self.choices.one_of(("rollup", "cube", "grouping sets"))
        if form == "grouping sets":
            sets = [f"({', '.join(text for text in texts if self.choices.chance(50))})" for _ in range(3)]
            sets.append(f"({', '.join(texts)})")
            clause = f"grouping sets ({', '.join(sets)})"
        else:
            clause = f"{form} ({', '.join(texts)})"
        items = []
        for kind in types:
            same_type = [key for key in keys if key.type == kind]
            if same_type and self.choices.chance(60):
                items.append(self.choices.one_of(same_type))
            else:
                items.append(self._aggregate(kind, local, depth))
        where = self._condition(source, outer, depth)
        text = f"select {', '.join(item.quereus for item in items)} from {source.quereus}"
        text += "" if where is None else f" where {where.quereus}"
        return Query(f"{text} group by {clause}", "", tuple(item.type for item in items))

    def _qualified(self, depth: int, types: Sequence[str], outer: Sequence[Expr]) -> Query:
        source = self.source(depth, outer)
        parts = self.parts(depth, types, source, outer)
        window = self._window(self.expressions(self.choices, source.columns, self.parameters), source)
        text = f"select {', '.join(item.quereus for item in parts.items)} from {source.quereus}"
        text += "" if parts.where is None else f" where {parts.where.quereus}"
        operator = self.choices.one_of((">", "<=", "="))
        return Query(
            f"{text} qualify {window.quereus} {operator} 2", "", tuple(item.type for item in parts.items)
        )

    def _flagged(self, depth: int, types: Sequence[str], outer: Sequence[Expr]) -> Query:
        left, right = self._primary(0), self._primary(0)
        own = f"m{next(self._aliases)}"
        kind, flag = self.choices.one_of(
            (
                ("left join", f"exists right as {own}"),
                ("right join", f"exists left as {own}"),
                ("full join", f"exists left as {own}"),
                ("full join", f"exists right as {own}, exists left as {own}b"),
            )
        )
        condition = self._join_condition(left, right, depth, outer)
        text = f"{left.quereus} {kind} {right.quereus} on {condition.quereus} {flag}"
        source = Source(text, text, (*left.columns, *right.columns, Expr(own, own, "bool", True)))
        parts = self.parts(depth, types, source, outer)
        text = f"select {', '.join(item.quereus for item in parts.items)} from {text}"
        text += "" if parts.where is None else f" where {parts.where.quereus}"
        return Query(text, "", tuple(item.type for item in parts.items))
