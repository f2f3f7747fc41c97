"""Queries: set operations, joins, windows, grouping, WITH."""

import pytest

from quereus_store.sql import nodes, parse_script, parse_statement, render


def body(text: str) -> nodes.QueryBody:
    return parse_statement(text).body


def shape(node: nodes.QueryBody) -> str:
    """A set operation with every operand in parentheses, SELECTs by their first literal."""
    if isinstance(node, nodes.Query):
        return f"[{shape(node.body)}]"
    if isinstance(node, nodes.SetOperation):
        return f"({shape(node.left)} {node.operator} {shape(node.right)})"
    assert isinstance(node, nodes.Select)
    return str(node.items[0].expression.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1 except select 2 union select 3", "((1 except 2) union 3)"),
        ("select 1 union select 2 intersect select 3", "(1 union (2 intersect 3))"),
        ("select 1 intersect select 2 union select 3", "((1 intersect 2) union 3)"),
        ("select 1 union (select 2 except select 3)", "(1 union (2 except 3))"),
        ("select 1 union (select 2 limit 1)", "(1 union [2])"),
        ("((select 1)) diff (select 2)", "(1 diff 2)"),
    ],
)
def test_set_operations_group_to_the_left_and_intersect_tighter(text: str, expected: str):
    assert shape(body(text)) == expected


def test_order_and_limit_of_a_parenthesised_operand_stay_with_it():
    query = parse_statement("(select 1 order by 1 limit 2) union all select 2 order by 1 limit 3, 4")
    assert isinstance(query.body.left, nodes.Query)
    assert query.body.left.limit.value == 2
    assert not query.body.distinct
    assert (query.limit.value, query.offset.value) == (4, 3)


def test_a_parenthesised_query_is_the_query():
    assert parse_statement("((select 1))") == parse_statement("select 1")


def test_a_comma_is_a_cross_join_of_what_stands_on_both_sides():
    assert (
        body("select * from a, b join c on d").source
        == body("select * from a cross join (b join c on d)").source
    )


@pytest.mark.parametrize(
    "text",
    [
        "select * from a natural left outer join b",
        "select * from (a join b using (x, y)) right join (c cross join d) on true",
        "select * from ((select 1) as a join t on true) full join b on 1 exists left as l, exists right as r",
        "select * from a left join lateral (select a.x) as q (y) on true",
        "select * from a cross join lateral json_each(a.x) as j (k, v)",
        "select * from (((select 1) union (select 2))) as t (n)",
        "select * from (values (1), (2)) as v (n), (delete from t returning a) as d",
        "select * from committed.t as old",
    ],
)
def test_sources(text: str):
    statement = parse_statement(text)
    assert parse_statement(render(statement)) == statement


def test_grouping_constructs():
    select = body("select 1 from t group by a, (b, c), rollup (d, (e, f)), cube (g), grouping sets ((h), ())")
    kinds = [type(element) for element in select.group_by]
    assert kinds == [
        nodes.ColumnReference,
        nodes.GroupingSet,
        nodes.Rollup,
        nodes.Cube,
        nodes.GroupingSets,
    ]
    assert [len(element.expressions) for element in select.group_by[2].elements] == [1, 2]


def test_windows_named_refined_and_framed():
    select = body(
        "select sum(a) over (w rows between 1 preceding and unbounded following exclude ties), rank() over w "
        "from t window w as (partition by b order by c desc nulls last) qualify rank() over w = 1"
    )
    first = select.items[0].expression.window
    assert first.base == "w"
    assert first.frame.unit is nodes.FrameUnit.ROWS
    assert first.frame.exclusion is nodes.FrameExclusion.TIES
    assert select.items[1].expression.window == nodes.WindowReference("w")
    assert select.windows[0].specification.order_by[0].nulls is nodes.NullsPlacement.LAST
    assert select.qualify is not None


def test_one_bound_ends_at_the_current_row():
    frame = body("select f(x) over (groups 2 preceding)").items[0].expression.window.frame
    assert frame.unit is nodes.FrameUnit.GROUPS
    assert frame.end.kind is nodes.BoundKind.CURRENT_ROW


def test_soft_words_are_aliases_where_they_open_no_clause():
    assert body("select 1 from t window").source.alias == "window"
    assert body("select 1 from t qualify where a").source.alias == "qualify"
    assert body("select a nulls from t groups").items[0].alias == "nulls"


def test_aliases():
    select = body('select a as \'Full name\', b c, d as key, "e" "F g" from t')
    assert [item.alias for item in select.items] == ["Full name", "c", "key", "F g"]


def test_with():
    query = parse_statement(
        "with recursive n (i) as not materialized (select 1 union all select i + 1 from n), "
        "w as (insert into t values (1) returning a) option (maxrecursion 5) select * from n"
    )
    clause = query.with_clause
    assert clause.recursive
    assert clause.max_recursion == 5
    assert clause.members[0].columns == ("i",)
    assert clause.members[0].materialization is nodes.Materialization.NOT_MATERIALIZED
    assert isinstance(clause.members[1].query, nodes.Insert)


def test_membership_flags():
    operation = body("select 1 union all exists left as l, exists right as r select 2")
    assert operation.flags == (
        nodes.MembershipFlag("l", nodes.Side.LEFT),
        nodes.MembershipFlag("r", nodes.Side.RIGHT),
    )


def test_inverse_defaults_and_schema_path():
    query = parse_statement(
        "select cm / 2.5 as inches with inverse (cm = new.inches * 2.5) from meas with schema a, temp "
        "limit 1 with defaults (zone = 'x')"
    )
    assert query.body.items[0].inverse[0].column == "cm"
    assert query.body.schema_path == ("a", "temp")
    assert query.defaults[0].column == "zone"


def test_a_script_needs_no_separators_and_knows_the_span_of_each_statement():
    text = "select 1 select 2;; insert into t values (1)  ;"
    spans = [statement.span for statement in parse_script(text)]
    assert [text[span.start : span.end] for span in spans] == [
        "select 1",
        "select 2",
        "insert into t values (1)",
    ]
