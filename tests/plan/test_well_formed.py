"""Any query that binds gives a well-formed plan: see ``binding.verify``."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from quereus_store.plan.nodes import free_columns
from tests.plan.binding import bind, verify

COLUMNS = {"crew": ("id", "nick", "rank", "ship"), "ship": ("name", "tons"), "words": ("id", "n", "p")}


class _Names:
    """Aliases that never repeat within one query."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"a{self.count}"


@st.composite
def expressions(draw: DrawFn, columns: list[str], names: _Names, depth: int) -> str:
    """An expression over some qualified columns."""

    def part() -> str:
        return draw(expressions(columns, names, depth - 1))

    kinds = ["column", "literal"]
    if depth > 0:
        kinds += ["comparison", "arithmetic", "case", "in", "scalar", "exists", "member", "call", "between"]
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "column":
            return draw(st.sampled_from(columns))
        case "literal":
            return draw(st.sampled_from(["1", "'x'", "null", "2.5", "true"]))
        case "comparison":
            return f"({part()} {draw(st.sampled_from(['=', '<', 'is', '<>']))} {part()})"
        case "arithmetic":
            return f"({part()} {draw(st.sampled_from(['+', '*', '||', 'and', 'or']))} {part()})"
        case "case":
            return f"case {part()} when {part()} then {part()} else {part()} end"
        case "in":
            return f"({part()} in ({part()}, {part()}))"
        case "scalar":
            return f"({draw(selects(columns, names, depth - 1, width=1))} limit 1)"
        case "exists":
            return f"exists ({draw(selects(columns, names, depth - 1, width=2))})"
        case "member":
            return f"({part()} in ({draw(selects(columns, names, depth - 1, width=1))}))"
        case "call":
            return f"coalesce({part()}, typeof({part()}))"
    return f"({part()} between {part()} and {part()})"


@st.composite
def sources(draw: DrawFn, outer: list[str], names: _Names, depth: int) -> tuple[str, list[str]]:
    """A FROM clause and the columns that it makes visible."""
    alias = names.fresh()
    if depth > 0 and draw(st.booleans()):
        text = f"({draw(selects(outer, names, depth - 1, width=2))}) as {alias}(x, y)"
        visible = [f"{alias}.x", f"{alias}.y"]
    else:
        table = draw(st.sampled_from(sorted(COLUMNS)))
        text, visible = f"{table} {alias}", [f"{alias}.{column}" for column in COLUMNS[table]]
    if depth > 0 and draw(st.booleans()):
        kind = draw(st.sampled_from(["join", "left join", "right join", "full join", "join lateral"]))
        if kind == "join lateral":
            inner = names.fresh()
            query = draw(selects(visible + outer, names, depth - 1, width=1))
            return f"{text} join lateral ({query}) as {inner}(z) on true", [*visible, f"{inner}.z"]
        other, more = draw(sources(outer, names, depth - 1))
        condition = draw(expressions(visible + more, names, depth - 1))
        return f"{text} {kind} ({other}) on {condition}", visible + more
    return text, visible


@st.composite
def selects(draw: DrawFn, outer: list[str], names: _Names, depth: int, width: int) -> str:
    """A SELECT of so many columns that may read those of an enclosing query."""
    source, visible = draw(sources(outer, names, depth))
    reachable = visible + outer
    where = f" where {draw(expressions(reachable, names, depth))}" if draw(st.booleans()) else ""
    grouped = draw(st.booleans())
    if grouped:
        key = draw(st.sampled_from(visible))
        argument = draw(st.sampled_from(visible))
        items = [key, f"count({argument})", f"max({argument}) over (order by {key})"][:width]
        items[-1] = draw(st.sampled_from([items[-1], f"count({argument})"]))
        tail = f" group by {key} having count(*) > 0"
        if items[-1].endswith(")") and "over" in items[-1]:
            items[-1] = key
    else:
        items = [draw(expressions(reachable, names, depth)) for _ in range(width)]
        items[-1] = draw(
            st.sampled_from([items[-1], f"count(*) over (partition by {visible[0]} order by {visible[-1]})"])
        )
        tail = ""
    distinct = "distinct " if draw(st.booleans()) else ""
    return f"select {distinct}{', '.join(items)} from {source}{where}{tail}"


@st.composite
def _queries(draw: DrawFn) -> str:
    names = _Names()
    query = draw(selects([], names, 2, width=2))
    if draw(st.booleans()):
        operator = draw(st.sampled_from(["union", "union all", "intersect", "except", "diff"]))
        query = f"{query} {operator} {draw(selects([], names, 1, width=2))}"
    if draw(st.booleans()):
        query = f"with c(x, y) as ({query}) select c.x, d.y from c join c d on c.x is d.x"
    order = draw(st.sampled_from(["", " order by 2 desc, 1", " order by 1 limit 3"]))
    return query + order


def queries() -> SearchStrategy[str]:
    """Whole queries of two columns."""
    return _queries()


@settings(max_examples=150, deadline=None)
@given(queries())
def test_plans_read_only_what_is_there(sql: str) -> None:
    plan = bind(sql)
    verify(plan)
    assert not free_columns(plan)
    assert len(plan.columns) == 2
