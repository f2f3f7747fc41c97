# ruff: noqa: E501 - statements and messages stay whole
"""CREATE, DROP, ALTER, declared schemas, transactions and commands."""

import pytest

from quereus_store.sql import nodes, parse_expression, parse_statement, render


def columns(text: str) -> dict[str, nodes.ColumnDefinition]:
    return {column.name: column for column in parse_statement(f"create table t ({text})").columns}


def test_types_as_written():
    found = columns(
        "a, b VarChar(5), c double precision, d decimal(10, -2), e timestamp(3) with time zone, f character varying"
    )
    types = [column.type_name for column in found.values()]
    assert types == [
        None,
        nodes.TypeName("VarChar", ("5",)),
        nodes.TypeName("double precision"),
        nodes.TypeName("decimal", ("10", "-2")),
        nodes.TypeName("timestamp with time zone", ("3",)),
        nodes.TypeName("character varying"),
    ]


def test_column_constraints_keep_their_order():
    (column,) = columns(
        "a integer constraint pk primary key desc on conflict replace not null on conflict ignore null unique "
        "check on insert, update (a > 0) on conflict fail collate nocase references s.p (x) on delete set null "
        "on update no action not deferrable initially deferred default (1)"
    ).values()
    assert [type(constraint) for constraint in column.constraints] == [
        nodes.ColumnPrimaryKey,
        nodes.NotNullConstraint,
        nodes.NullConstraint,
        nodes.ColumnUnique,
        nodes.CheckConstraint,
        nodes.CollateConstraint,
        nodes.ColumnReferences,
        nodes.DefaultConstraint,
    ]
    assert column.constraints[0].name == "pk"
    assert column.constraints[6].reference.on_update is nodes.ReferentialAction.NO_ACTION


def test_a_collate_after_default_is_the_columns():
    (column,) = columns("s text default 'z' collate nocase not null").values()
    default = nodes.DefaultConstraint(parse_expression("'z'"))
    assert column.constraints == (default, nodes.CollateConstraint("nocase"), nodes.NotNullConstraint())


def test_a_collate_within_parentheses_or_case_is_the_defaults():
    found = columns(
        "s text default ('z' collate nocase), c text default case when 'a' collate nocase = x then 1 end"
    )
    assert found["s"].constraints == (nodes.DefaultConstraint(parse_expression("'z' collate nocase")),)
    assert [type(constraint) for constraint in found["c"].constraints] == [nodes.DefaultConstraint]


def test_tags_belong_to_a_named_constraint_else_to_the_column():
    found = columns("a text constraint u unique with tags (x = 1), b text unique with tags (y = 2)")
    assert found["a"].tags == ()
    assert found["a"].constraints[0].tags[0].key == "x"
    assert found["b"].tags[0].key == "y"


def test_generated_columns_are_virtual_unless_stored():
    found = columns("a integer generated always as (1) stored, b integer generated always as (2)")
    storages = [column.constraints[0].storage for column in found.values()]
    assert storages == [nodes.GeneratedStorage.STORED, nodes.GeneratedStorage.VIRTUAL]


def test_table_constraints_and_clauses():
    table = parse_statement(
        "create table if not exists s.t (a integer, b text, primary key (a desc, b), unique (b) with tags (k = true),"
        " constraint c check (a > 0), foreign key (a) references p on delete cascade,) "
        "using store (collation = 'NOCASE', 5) with context (who text null, n integer) with tags (a = -1.5)"
    )
    assert table.name == nodes.ObjectName("t", "s")
    assert [type(constraint) for constraint in table.constraints] == [
        nodes.PrimaryKeyConstraint,
        nodes.UniqueConstraint,
        nodes.CheckConstraint,
        nodes.ForeignKeyConstraint,
    ]
    assert table.module.arguments[0].name == "collation"
    assert table.context[0].nullable
    assert table.tags[0].value.value == -1.5


def test_tables_without_columns_of_their_own():
    assert parse_statement("create table t using memory('create table x(a)')").module.name == "memory"
    assert parse_statement("create table t as select 1 as a").query is not None
    assert parse_statement("create table t maintained (a) as select 1").maintained.columns == ("a",)
    assert parse_statement("create table t (primary key ())").constraints[0].columns == ()


@pytest.mark.parametrize(
    "text",
    [
        "create unique index if not exists main.i on s.t (a collate nocase desc, b) where a > 1 with tags (x = 1)",
        "create view v (a, b) as select 1, 2 with defaults (c = 1) with tags (x = null)",
        "create materialized view if not exists v using store (k = 'j') as select 1 as a order by a",
        "create assertion s.a check (not exists (select 1 from t))",
        "drop materialized view if exists s.v",
        "drop index i",
        "refresh materialized view v",
        "alter table s.t rename to u",
        "alter table t rename column a to b",
        "alter table t rename constraint a to b",
        "alter table t add column tags integer not null default 0",
        "alter table t add constraint c check (a > 0) with tags (x = 1)",
        "alter table t add unique (a, b)",
        "alter table t drop column maintained",
        "alter table t drop maintained",
        "alter table t drop constraint c",
        "alter table t alter primary key (a desc, b)",
        "alter table t alter column set set not null",
        "alter table t alter column a drop not null",
        "alter table t alter column a set data type varchar(5)",
        "alter table t alter column a set default a + 1",
        "alter table t alter column a drop default",
        "alter table t alter column a set collate nocase",
        "alter table t set tags (a = 1, \"b.c\" = 'x')",
        "alter table t alter constraint c add tags ()",
        "alter table t alter column a drop tags (a, b)",
        "alter table t set maintained (a) as select 1",
        "alter materialized view v set tags ()",
        "declare schema main version '1.0.0' using (default_vtab_module = 'memory') { }",
        "declare lens for x over y { view t as select a from y.s; }",
        "diff schema main",
        "apply schema main to version '2' options (dry_run = false, rename_policy = 'deny') with seed",
        "explain schema main version '2.0'",
        "begin immediate",
        "commit",
        "rollback to s",
        "savepoint s",
        "release s",
        "pragma foreign_keys = true",
        "pragma x = 'on'",
        "analyze",
        "analyze main.t",
        "analyze main.*",
        "explain code select 1",
        "explain analyze delete from t",
    ],
)
def test_canonical_statements_are_their_own_rendering(text: str):
    assert render(parse_statement(text)) == text


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("alter table t add tags integer", "alter table t add column tags integer"),
        ("alter table t drop maintained", "alter table t drop maintained"),
        ("alter table t rename a to b", "alter table t rename column a to b"),
        ("alter table t alter a set not null", "alter table t alter column a set not null"),
        ("begin transaction", "begin"),
        ("rollback transaction to savepoint s", "rollback to s"),
        ("release savepoint s", "release s"),
        ("pragma foreign_keys = on", "pragma foreign_keys = 'on'"),
        ("explain select 1", "explain query plan select 1"),
        ("create virtual table t using m(1)", "create table t using m (1)"),
    ],
)
def test_other_spellings(text: str, rendered: str):
    assert render(parse_statement(text)) == rendered


DECLARATION = """
declare schema main {
  table users { id integer primary key, email text not null unique }
  table sessions (id text primary key) using memory;
  table customer with tags ("quereus.previous_name" = 'client') { id integer primary key, }
  unique index users_email on users(email) where email is not null
  view v1 as select id from users materialized view m2 as select id from users
  view v3 as select id from users where exists (select 1 from users materialized)
  seed users ( (1, 'a'), (2, 'b') )
  seed roles values (id, name) values (1, 'admin'), (2, 'viewer');
  domain email as text check (like('%@%', value));
  assertion positive check (not exists (select 1 from users where id < 0))
}
"""


def test_items_of_a_declaration_need_no_separators():
    declared = parse_statement(DECLARATION)
    assert [type(item).__name__ for item in declared.items] == [
        "CreateTable",
        "CreateTable",
        "CreateTable",
        "CreateIndex",
        "CreateView",
        "CreateMaterializedView",
        "CreateView",
        "SeedData",
        "SeedData",
        "IgnoredItem",
        "CreateAssertion",
    ]
    assert declared.items[4].query.body.source.alias is None
    assert declared.items[6].query.body.where.query.body.source.alias == "materialized"
    assert declared.items[8].columns == ("id", "name")
    assert parse_statement(render(declared)) == declared


def test_outside_a_declaration_item_words_are_aliases():
    assert parse_statement("select a from t1 materialized").body.source.alias == "materialized"
