# ruff: noqa: E501 - statements and messages stay whole
"""Text from trees: names of result columns, messages, and exact SQL."""

import pytest

from quereus_store.sql import (
    canonical_text,
    column_name_text,
    nodes,
    parse_expression,
    quote_identifier,
    render,
    render_expression,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1.50", "1.50"),
        ("1E3", "1E3"),
        ("007", "007"),
        ("'it''s'", "'it''s'"),
        ("X'0A Ff'", "x'0aff'"),
        ("CREW.NICK", "NICK"),
        ('"a b"', "a b"),
        ("CREW.NICK + 1", "CREW.NICK + 1"),
        ('"a b" || "select"', '"a b" || "select"'),
        ("a <> b", "a != b"),
        ("a == b", "a == b"),
        ("-x", "-x"),
        ("- -1", "--1"),
        ("NOT x", "not x"),
        ("x IS NULL", "x is null"),
        ("x IS NOT TRUE", "x is not true"),
        ("a IN (1,2)", "a in (1, 2)"),
        ("a NOT IN (1)", "not a in (1)"),
        ("a LIKE 'x'", "a like 'x'"),
        ("a NOT LIKE 'x'", "not (a like 'x')"),
        ("a NOT BETWEEN 1 AND 2", "a not between 1 and 2"),
        ("F( a,b )", "f(a, b)"),
        ("f(DISTINCT a)", "f(distinct a)"),
        ("COUNT(*)", "count(*)"),
        ("CAST(a AS TEXT)", "cast(a as text)"),
        ("a COLLATE NOCASE", "a collate nocase"),
        ("CASE a WHEN 1 THEN 2 ELSE 3 END", "case a when 1 then 2 else 3 end"),
        ("(SELECT 1 AS a FROM t)", "(select 1 as a from t)"),
        ("EXISTS (SELECT 1)", "exists (select 1)"),
        (
            "sum(v) OVER (PARTITION BY a ORDER BY b DESC NULLS LAST, c ASC ROWS 1 PRECEDING)",
            "sum(v) over (partition by a order by b desc nulls last, c rows between 1 preceding and current row)",
        ),
        ("a -> 'b'", "json_extract(a, '$.b')"),
        ("a ->> 0", "cast(json_extract(a, '$[0]') as text)"),
        ("?", "?"),
        ("$name", ":name"),
        ("(id + 1) between 1 and 2", "id + 1 between 1 and 2"),
        ("id + (rank + 1)", "id + rank + 1"),
        ("id - (rank - 1)", "id - (rank - 1)"),
        ("(id + rank) * 2", "(id + rank) * 2"),
        ("(a and b) or (c and d)", "a and b or c and d"),
        ("(a or b) and c", "(a or b) and c"),
        ("not (a = b)", "not (a = b)"),
        ("-(a + b)", "-(a + b)"),
        ("(a + b) is null", "(a + b) is null"),
        ("a || (b || c)", "a || b || c"),
        ("a / (b * c)", "a / (b * c)"),
        ("a = (b < c)", "a = b < c"),
        ("(a like b) = c", "a like b = c"),
    ],
)
def test_names_of_unaliased_columns(text: str, name: str):
    assert column_name_text(parse_expression(text)) == name


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("(a or b) between 0 and 1", "(a or b) between 0 and 1"),
        ("- -a", "-(-a)"),
        ("(not a) = b", "(not a) = b"),
        ("(a is null) = b", "(a is null) = b"),
        ("(a || b) collate nocase", "(a || b) collate nocase"),
        ("a + (b + c)", "a + (b + c)"),
        ("(a in (1)) in (2)", "a in (1) in (2)"),
        ("a || (-b)", "a || (-b)"),
        ("(a + b) is distinct from (c = d)", "a + b is distinct from (c = d)"),
        ("(a, b) = (1, 2)", "(a, b) = (1, 2)"),
        ("row(a)", "row(a)"),
        ('"default" + 1', '"default" + 1'),
    ],
)
def test_exact_text_keeps_the_parentheses_it_needs(text: str, exact: str):
    tree = parse_expression(text)
    assert render_expression(tree) == exact
    assert parse_expression(exact) == tree


def test_messages_show_canonical_text():
    assert canonical_text(parse_expression("CREW.rank <> 1")) == "CREW.rank != 1"


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("a", "a"),
        ("_a1", "_a1"),
        ("tags", "tags"),
        ("key", "key"),
        ("Select", '"Select"'),
        ("temp", '"temp"'),
        ("a b", '"a b"'),
        ("1a", '"1a"'),
        ('a"b', '"a""b"'),
        ("é", '"é"'),
        ("", '""'),
    ],
)
def test_names_are_quoted_only_where_necessary(name: str, quoted: str):
    assert quote_identifier(name) == quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), (5, "5"), (2.5, "2.5"), ("it's", "'it''s'"), (b"\x0a", "x'0a'")],
)
def test_literals_made_from_values(value: nodes.LiteralValue, text: str):
    assert render(nodes.Literal.of(value)) == text


def test_literals_made_from_extreme_numbers_read_back():
    for value in (float("inf"), 1e300, 10**10_000):
        assert parse_expression(render(nodes.Literal.of(value))).value == value


def test_a_negative_literal_is_wrapped_where_minus_would_reach_further():
    tree = nodes.BinaryOperation(
        nodes.BinaryOperator.CONCATENATE, nodes.Literal.of(-5), nodes.Literal.of("x")
    )
    assert render(tree) == "(-5) || 'x'"


def test_collate_does_not_become_part_of_a_default():
    column = nodes.ColumnDefinition(
        "s",
        nodes.TypeName("text"),
        (nodes.DefaultConstraint(nodes.Literal.of("z")), nodes.CollateConstraint("NOCASE")),
    )
    assert render(column) == "s text collate NOCASE default 'z'"


def test_constraints_render_as_fragments():
    check = nodes.CheckConstraint(
        parse_expression("a > 0"), (nodes.RowOperation.INSERT, nodes.RowOperation.UPDATE), name="pos"
    )
    assert render(check) == "constraint pos check on insert, update (a > 0)"


def test_chains_of_any_length():
    tree = parse_expression(" or ".join(["a = 1"] * 5000))
    assert render(tree) == " or ".join(["a = 1"] * 5000)
