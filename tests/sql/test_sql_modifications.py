# ruff: noqa: E501 - statements and messages stay whole
"""INSERT, UPDATE and DELETE."""

import pytest

from quereus_store.sql import nodes, parse_statement, render


def test_insert_with_everything():
    statement = parse_statement(
        "with s as (select 1) insert into main.t as x (a, b) with context who = 'me', n = 1 "
        "values (1, default), (?, 2) on conflict (a) where b > 1 do update set b = excluded.b where x.a = 1 "
        "on conflict do nothing with schema app with tags (source = 'import') returning *, old.a as was"
    )
    assert isinstance(statement, nodes.Insert)
    assert statement.table == nodes.TableReference("t", "main", "x")
    assert statement.columns == ("a", "b")
    assert [each.column for each in statement.context] == ["who", "n"]
    assert statement.source.body.rows[0][1] == nodes.DefaultValue()
    assert statement.upserts[0].target == ("a",)
    assert statement.upserts[1] == nodes.UpsertClause()
    assert statement.schema_path == ("app",)
    assert statement.tags[0].value.value == "import"
    assert statement.returning[1].alias == "was"
    assert statement.with_clause.members[0].name == "s"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("insert into t default values", nodes.DefaultValues),
        ("insert into t (select 1)", nodes.Query),
        ("insert into t (a) (select 1)", nodes.Query),
        ("insert t (a) with c as (select 1) select * from c", nodes.Query),
        ("insert into t delete from s returning a", nodes.Delete),
    ],
)
def test_sources_of_an_insert(text: str, source: type):
    statement = parse_statement(text)
    assert isinstance(statement.source, source)
    assert parse_statement(render(statement)) == statement


def test_replace_into_is_insert_or_replace():
    assert parse_statement("replace into t values (1)") == parse_statement(
        "insert or replace into t values (1)"
    )


def test_on_conflict_after_a_cross_join_is_the_inserts():
    statement = parse_statement("insert into t select 1 from a cross join b on conflict do nothing")
    assert len(statement.upserts) == 1


def test_update_with_everything():
    statement = parse_statement(
        "update or ignore t as x with context who = 'me' set (a, b) = (1, default), c = 2, (d, e) = (select 1, 2) "
        "from u join v using (k) where x.k = u.k returning new.a, old.a"
    )
    assert isinstance(statement, nodes.Update)
    assert statement.conflict_action is nodes.ConflictAction.IGNORE
    kinds = [type(assignment) for assignment in statement.assignments]
    assert kinds == [nodes.Assignment] * 3 + [nodes.MultiAssignment]
    assert isinstance(statement.source, nodes.Join)


def test_delete_with_everything():
    statement = parse_statement("delete from t x using u where x.k = u.k with tags (a = 1) returning x.k")
    assert isinstance(statement, nodes.Delete)
    assert statement.target.alias == "x"
    assert isinstance(statement.source, nodes.TableReference)
    assert parse_statement("delete t").target.name == "t"


def test_a_subquery_can_be_the_target_of_a_write():
    statement = parse_statement("update (select a from t) as v (b) set b = 1")
    assert statement.target.columns == ("b",)


def test_clauses_before_and_after_the_source_are_one():
    before = parse_statement("insert into t with context n = 1 values (1)")
    after = parse_statement("insert into t values (1) with context n = 1")
    assert before == after
