"""Expressions: precedence, the forms that are spellings of others, parameters."""

import pytest

from quereus_store.sql import nodes, parse_expression, parse_statement


def grouped(text: str) -> str:
    """An expression with every operator in parentheses."""

    def show(node: nodes.Expression) -> str:
        match node:
            case nodes.BinaryOperation():
                return f"({show(node.left)} {node.operator} {show(node.right)})"
            case nodes.UnaryOperation():
                return f"({node.operator} {show(node.operand)})"
            case nodes.IsTest():
                return f"({show(node.operand)} is {'not ' if node.negated else ''}{node.target})"
            case nodes.IsDistinctFrom():
                return f"({show(node.left)} {'same' if node.negated else 'distinct'} {show(node.right)})"
            case nodes.Between():
                return f"({show(node.operand)} between {show(node.low)} {show(node.high)})"
            case nodes.PatternMatch():
                return f"({show(node.operand)} {node.operator} {show(node.pattern)})"
            case nodes.InList():
                return f"({show(node.operand)} in {len(node.items)})"
            case nodes.Collate():
                return f"({show(node.operand)} collate {node.collation})"
            case nodes.ColumnReference():
                return node.column
            case nodes.Literal():
                return str(node.value)
        raise AssertionError(node)

    return show(parse_expression(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a or b and c", "(a or (b and c))"),
        ("a xor b or c", "((a xor b) or c)"),
        ("not a = b", "(not (a = b))"),
        ("not a and b", "((not a) and b)"),
        ("not not a is null", "(not (not (a is null)))"),
        ("a and not b or c", "((a and (not b)) or c)"),
        ("a = b is null", "((a = b) is null)"),
        ("a < b = c < d", "((a < b) = (c < d))"),
        ("a < b < c", "((a < b) < c)"),
        ("a in (1) in (2)", "((a in 1) in 1)"),
        ("a between 1 and 3 + 2", "(a between 1 (3 + 2))"),
        ("a between b and c and d", "((a between b c) and d)"),
        ("a not between 1 and 2 = b", "((a between 1 2) = b)"),
        ("a like b || c", "(a like (b || c))"),
        ("a & b | c << d >> e", "((((a & b) | c) << d) >> e)"),
        ("a & b + c", "(a & (b + c))"),
        ("a < b & c", "(a < (b & c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a + b * c % d", "(a + ((b * c) % d))"),
        ("2 * 3 || 4", "(2 * (3 || 4))"),
        ("-2 || 3", "(- (2 || 3))"),
        ("-a * b", "((- a) * b)"),
        ("a || -b || c", "((a || (- b)) || c)"),
        ("- - ~+a", "(- (- (~ (+ a))))"),
        ("a || b collate nocase", "(a || (b collate nocase))"),
        ("-a collate nocase", "(- (a collate nocase))"),
        ("(a or b) and c", "((a or b) and c)"),
        ("(not a) = b", "((not a) = b)"),
        ("a is b + 1", "(a same (b + 1))"),
        ("a is not b", "(a distinct b)"),
        ("a is distinct from b and c", "((a distinct b) and c)"),
        ("a is not distinct from b", "(a same b)"),
        ("a isnull or b notnull", "((a is null) or (b is not null))"),
        ("a is unknown", "(a is unknown)"),
        ("a <> b", "(a != b)"),
    ],
)
def test_precedence(text: str, expected: str):
    assert grouped(text) == expected


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("a not in (1, 2)", "not a in (1, 2)"),
        ("a not like 'x'", "not (a like 'x')"),
        ("a not glob 'x'", "not a glob 'x'"),
        ("a is b", "a is not distinct from b"),
        ("a -> 'b'", "json_extract(a, '$.b')"),
        ("a -> '$.b'", "json_extract(a, '$.b')"),
        ("a -> 2", "json_extract(a, '$[2]')"),
        ("a -> b", "json_extract(a, b)"),
        ("a ->> 'b'", "cast(json_extract(a, '$.b') as text)"),
        ("a -> 'b' -> 'c' = 1", "json_extract(json_extract(a, '$.b'), '$.c') = 1"),
        ("UPPER(a)", "upper(a)"),
        ("cast(a as INTEGER)", "cast(a as integer)"),
        ("row(1, 2)", "(1, 2)"),
        ("a = some (select 1)", "a = any (select 1)"),
        ("((a))", "a"),
        ("((select 1))", "(select 1)"),
        ("f(all a)", "f(a)"),
    ],
)
def test_spellings_of_one_tree(text: str, other: str):
    assert parse_expression(text) == parse_expression(other)


def test_numbers_keep_their_spelling():
    assert parse_expression("1.50") == nodes.Literal(nodes.LiteralKind.REAL, 1.5, "1.50")
    assert parse_expression("1.50") != parse_expression("1.5")


def test_true_and_one_are_different_literals():
    assert nodes.Literal.of(True) != nodes.Literal.of(1)
    assert parse_expression("true") == nodes.Literal.of(True)


def test_positions_do_not_take_part_in_comparison():
    first, second = parse_expression("a + b"), parse_expression("\n  a+b")
    assert first == second
    assert hash(first) == hash(second)
    assert (second.position.line, second.position.column) == (2, 3)


def test_column_references_have_up_to_three_parts():
    assert parse_expression('Main."T 1".c') == nodes.ColumnReference("c", "T 1", "Main")


def test_a_call_with_all_its_clauses():
    call = parse_expression("group_concat(distinct a, ',' order by b desc) filter (where c > 1)")
    assert isinstance(call, nodes.FunctionCall)
    assert call.distinct
    assert len(call.arguments) == 2
    assert call.order_by[0].descending
    assert isinstance(call.filter, nodes.BinaryOperation)


def test_filter_is_an_alias_unless_where_follows():
    select = parse_statement("select count(*) filter from t").body
    assert select.items[0].alias == "filter"


def test_soft_operators_are_aliases_unless_an_operand_follows():
    select = parse_statement("select a glob, b match from t").body
    assert [item.alias for item in select.items] == ["glob", "match"]
    assert isinstance(parse_expression("a match left(b, 1)"), nodes.PatternMatch)


def test_row_values_and_quantified_comparisons():
    assert parse_expression("(a, b) in ((1, 2))") == nodes.InList(
        parse_expression("row(a, b)"), (parse_expression("(1, 2)"),)
    )
    found = parse_expression("a <= all (select 1)")
    assert isinstance(found, nodes.QuantifiedComparison)
    assert found.quantifier is nodes.Quantifier.ALL
    assert isinstance(parse_expression("a = any(b)").right, nodes.FunctionCall)


def test_in_takes_a_list_a_query_or_nothing():
    assert parse_expression("a in ()").items == ()
    assert isinstance(parse_expression("a in (values (1))"), nodes.InSubquery)
    assert isinstance(parse_expression("a in ((select 1) union (select 2))"), nodes.InSubquery)
    assert isinstance(parse_expression("a in ((select 1) + 1)"), nodes.InList)


def test_reserved_words_that_name_functions():
    assert parse_expression("left(a, 1)") == nodes.FunctionCall("left", parse_expression("row(a, 1)").items)
    assert parse_expression("replace(a)").name == "replace"


def test_parameters_are_numbered_left_to_right_within_each_statement():
    select = parse_statement("select ?, ?2, :3, :name, $other, @third, ?").body
    found = [(item.expression.index, item.expression.name) for item in select.items]
    assert found == [
        (1, None),
        (2, None),
        (3, None),
        (None, "name"),
        (None, "other"),
        (None, "third"),
        (2, None),
    ]
