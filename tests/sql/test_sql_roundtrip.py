"""What is rendered reads back as the same tree, whatever the tree and its names."""

from hypothesis import HealthCheck, given, settings

from quereus_store.sql import nodes, parse_expression, parse_statement, render, render_expression
from tests.sql.sql_trees import (
    alterations,
    commands,
    declarations,
    definitions,
    expressions,
    modifications,
    queries,
)

slow = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def reads_back(statement: nodes.Statement) -> None:
    text = render(statement)
    assert parse_statement(text) == statement, text


@slow
@given(expressions(3))
def test_expressions(tree: nodes.Expression):
    text = render_expression(tree)
    assert parse_expression(text) == tree, text


@slow
@given(queries(2, leading=True))
def test_queries(tree: nodes.Query):
    reads_back(tree)


@slow
@given(modifications(2, leading=True))
def test_data_modifications(tree: nodes.DataModification):
    reads_back(tree)


@slow
@given(definitions())
def test_definitions(tree: nodes.Statement):
    reads_back(tree)


@slow
@given(alterations())
def test_alterations(tree: nodes.Statement):
    reads_back(tree)


@slow
@given(declarations())
def test_declarations(tree: nodes.Statement):
    reads_back(tree)


@slow
@given(commands())
def test_commands(tree: nodes.Statement):
    reads_back(tree)
