"""Operators, predicates, types, coercions, collations (types-and-values, sections 6 to 10 and 16)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.expressions import Case, ColumnRef, Comparison, InList
from quereus_store.types import INTEGER, NULL, TEXT, LogicalType
from tests.plan.binding import bind, expression, show, types_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = '5'", "Comparison(=, id, Cast('5'))"),
        ("nick = 5", "Comparison(=, Cast(nick), 5)"),
        ("nick = 'x'", "Comparison(=, nick, 'x')"),
        ("id == rank", "Comparison(=, id, rank)"),
        ("id is rank", "Comparison(is, id, rank)"),
        ("id is distinct from rank", "Comparison(is not, id, rank)"),
        ("id is null", "IsTest(id, null)"),
        ("id is not true", "IsTest(id, true, True)"),
        ("id between 1 and rank", "Between(Comparison(>=, id, 1), Comparison(<=, id, rank))"),
        ("id not between 1 and 2", "Not(Between(Comparison(>=, id, 1), Comparison(<=, id, 2)))"),
        ("id in (1, '2')", "InList(id, (1, Cast('2')))"),
        ("nick in (1, 2)", "InList(Cast(nick), (1, 2))"),
        ("nick in (1, 'x')", "InList(nick, (1, 'x'))"),
        ("id in ()", "False"),
        ("id and nick and rank", "Conjunction((id, nick, rank))"),
        ("id or nick or rank", "Disjunction((id, nick, rank))"),
        ("nick like 'a%' escape '!'", "PatternMatch(like, nick, 'a%', '!')"),
        ("(id, nick) = (1, 'x')", "Conjunction((Comparison(=, id, 1), Comparison(=, nick, 'x')))"),
        (
            "(id, rank) < (1, 2)",
            "Disjunction((Comparison(<, id, 1),"
            " Conjunction((Comparison(=, id, 1), Comparison(<, rank, 2)))))",
        ),
        (
            "(id, rank) in ((1, 2), (3, 4))",
            "Disjunction((Conjunction((Comparison(=, id, 1), Comparison(=, rank, 2))),"
            " Conjunction((Comparison(=, id, 3), Comparison(=, rank, 4)))))",
        ),
        ("-5", "-5"),
        ("coalesce(rank, 0)", "Coalesce((rank, 0))"),
        ("iif(id, 1, 2)", "Case(((id, 1)), 2)"),
        ("nullif(id, '1')", "NullIf(id, Comparison(=, id, Cast('1')))"),
        ("greatest(id, '3')", "Extremum(True, (id, '3'), (id, Cast('3')))"),
        ("nick -> 'a'", "Call(json_extract, (nick, '$.a'))"),
        ("nick || id", "Concat(nick, id)"),
    ],
)
def test_bound_form(text: str, expected: str) -> None:
    assert show(expression(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "INTEGER"),
        ("2.0", "REAL"),
        ("null", "NULL?"),
        ("id + 1", "INTEGER"),
        ("id + rank", "INTEGER?"),
        ("id / 2", "NUMERIC?"),
        ("id + 1.5", "NUMERIC?"),
        ("1.5 + 1.5", "REAL?"),
        ("nick + 1", "ANY?"),
        ("id & 1", "INTEGER"),
        ("-id", "INTEGER"),
        ("-nick", "ANY?"),
        ("id > 1", "BOOLEAN"),
        ("rank > 1", "BOOLEAN?"),
        ("rank is null", "BOOLEAN"),
        ("id is rank", "BOOLEAN"),
        ("exists (select 1)", "BOOLEAN"),
        ("nick || 'x'", "TEXT"),
        ("cast(id as text)", "TEXT"),
        ("cast(nick as integer)", "INTEGER?"),
        ("case when id then 1 else 2.5 end", "NUMERIC"),
        ("case when id then 1 end", "INTEGER?"),
        ("case when id then 1 else 'x' end", "ANY"),
        ("coalesce(rank, 1)", "INTEGER"),
        ("nullif(id, 1)", "INTEGER?"),
        ("(select id from crew)", "INTEGER?"),
        ("typeof(nick)", "TEXT"),
    ],
)
def test_types(text: str, expected: str) -> None:
    assert types_of(f"select {text} from crew") == [expected]


@pytest.mark.parametrize(
    ("logical_type", "expected"), [(INTEGER, "INTEGER"), (TEXT, "TEXT"), (NULL, "NULL?"), (None, "ANY?")]
)
def test_a_parameter_is_typed_by_the_value_bound_to_it(
    logical_type: LogicalType | None, expected: str
) -> None:
    types = {} if logical_type is None else {"p0": logical_type}
    assert types_of("select ?", **types) == [expected]


def test_a_parameter_is_coerced_like_a_literal() -> None:
    assert show(expression("id = ?", p0=TEXT)) == "Comparison(=, id, Cast(?0))"
    assert show(expression("id = :a", a=INTEGER)) == "Comparison(=, id, ?a)"


def test_json_casts_the_other_side() -> None:
    assert show(expression("j = 'fig'", "docs")) == "Comparison(=, j, Cast('fig'))"
    assert show(expression("j = null", "docs")) == "Comparison(=, j, None)"


def test_collations() -> None:
    def using(text: str) -> str:
        found = expression(text, "words")
        assert isinstance(found, Comparison | InList)
        return found.using

    assert using("p = 'x'") == "BINARY"
    assert using("p = n") == "NOCASE"
    assert using("n = 'x' collate binary") == "BINARY"
    assert using("n collate rtrim = r") == "RTRIM"
    assert using("upper(n) = 'x'") == "BINARY"
    assert using("n || 'x' = p") == "NOCASE"
    assert using("p in ('x', n)") == "NOCASE"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n = r", "ambiguous collation for comparison: column collations NOCASE vs RTRIM differ"),
        ("n collate nocase = r collate rtrim", "conflicting COLLATE clauses in comparison: NOCASE vs RTRIM"),
        ("id collate nocase = 1 collate rtrim", "conflicting COLLATE clauses in comparison: NOCASE vs RTRIM"),
        ("nullif(n, r)", "ambiguous collation"),
        ("n in ('x', r)", "ambiguous collation"),
    ],
)
def test_collation_conflicts(text: str, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        bind(f"select {text} from words")
    assert caught.value.line == 1


def test_a_simple_case_evaluates_its_operand_once() -> None:
    cheap = expression("case id when 1 then 'a' when 2 then 'b' end")
    assert isinstance(cheap, Case)
    assert cheap.shared is None
    dear = expression("case id + 1 when 1 then 'a' when 2 then 'b' end")
    assert isinstance(dear, Case)
    assert show(dear.shared) == "Arithmetic(+, id, 1)"
    operands = [condition.left for condition, _ in dear.branches if isinstance(condition, Comparison)]
    assert all(isinstance(operand, ColumnRef) and operand.id == dear.shared_id for operand in operands)


def test_row_values_must_match_in_size() -> None:
    with pytest.raises(Error, match="Row values have different sizes: left has 2, right has 3"):
        bind("select (1, 2) = (1, 2, 3)")


def test_a_program_s_own_function_wins_over_a_special_form() -> None:
    from dataclasses import replace

    from quereus_store.functions.builtins import builtin_functions
    from quereus_store.functions.registry import FunctionRegistry, ScalarFunction
    from quereus_store.plan.binder import bind_query
    from quereus_store.plan.nodes import Project
    from quereus_store.sql import nodes
    from quereus_store.sql.parser import parse_statement
    from tests.plan.binding import context

    own = ScalarFunction("nullif", lambda a, b: a, 2, 2, INTEGER)
    registry = FunctionRegistry([own], parent=builtin_functions())
    query = parse_statement("select nullif(1, 2)")
    assert isinstance(query, nodes.Query)
    plan = bind_query(replace(context(), registry=registry), query)
    assert isinstance(plan, Project)
    assert show(plan.expressions[0]) == "Call(nullif, (1, 2))"
