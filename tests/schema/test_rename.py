"""A rename reaches every name that means the renamed thing, and no other."""

# ruff: noqa: E501 - statements are quoted whole

import pytest

from quereus_store.errors import Error
from quereus_store.schema import rename
from quereus_store.schema.ddl import view_ddl
from quereus_store.sql.renderer import render
from tests.schema.support import catalog


def after_column(script, old, new, table="t"):
    made = catalog(script)
    return rename.rename_column(made, made.table("main", table), old, new)


def after_table(script, new, table="t"):
    made = catalog(script)
    return rename.rename_table(made, made.table("main", table), new)


def body(made, name, schema="main"):
    return view_ddl(made.view(schema, name)).partition(" as ")[2]


def view_after(
    query, old, new, tables="create table t (a integer, b integer); create table u (a integer, c integer);"
):
    """The text of a view's body after a rename of a column of ``t``."""
    return body(after_column(f"{tables} create view v as {query}", old, new), "v")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select a, b from t", "select z, b from t"),
        (
            "select t.a from t where t.a > 1 group by a having max(a) > 2 order by a",
            "select t.z from t where t.z > 1 group by z having max(z) > 2 order by z",
        ),
        ("select x.a from t as x", "select x.z from t as x"),
        ("select a as a from t order by a", "select z as a from t order by a"),
        ("select main.t.a from main.t", "select main.t.z from main.t"),
        ("select t.a, u.a from t join u on t.a = u.a", "select t.z, u.a from t inner join u on t.z = u.a"),
        ("select u.a from t join u using (a)", "select u.a from t inner join u on t.z = u.a"),
        (
            "select c from u where exists (select 1 from t where t.a = u.a)",
            "select c from u where exists (select 1 from t where t.z = u.a)",
        ),
        ("select c from u where a in (select a from t)", "select c from u where a in (select z from t)"),
        (
            "select b from t where b = (select max(c) from u where u.a = t.a)",
            "select b from t where b = (select max(c) from u where u.a = t.z)",
        ),
        (
            "select b from t where exists (select 1 from u where a = 1)",
            "select b from t where exists (select 1 from u where a = 1)",
        ),
        ("select s.a from (select a from t) as s", "select s.z from (select z from t) as s"),
        ("select s.a from (select * from t) as s", "select s.z from (select * from t) as s"),
        ("select s.a from (select a from t) as s(a)", "select s.a from (select z from t) as s(a)"),
        ("select s.x from (select a as x from t) as s", "select s.x from (select z as x from t) as s"),
        ("with q as (select a from t) select a from q", "with q as (select z from t) select z from q"),
        ("with q(a) as (select a from t) select a from q", "with q (a) as (select z from t) select a from q"),
        ("with t as (select a from u) select a from t", "with t as (select a from u) select a from t"),
        (
            "with recursive r as (select a from t union all select a + 1 from r where a < 5) select a from r",
            "with recursive r as (select z from t union all select z + 1 from r where z < 5) select z from r",
        ),
        (
            "select a from t union select a from u order by a",
            "select z from t union select a from u order by z",
        ),
        (
            "select sum(a) over (partition by b order by a) as s from t",
            "select sum(z) over (partition by b order by z) as s from t",
        ),
        (
            "select l.a from u join lateral (select t.a from t where t.b = u.c) as l on true",
            "select l.z from u inner join lateral (select t.z from t where t.b = u.c) as l on true",
        ),
        ("values (1, 2)", "values (1, 2)"),
    ],
)
def test_columns_in_queries(query, expected):
    assert view_after(query, "a", "z") == expected


def test_a_chain_of_a_thousand_operators():
    query = "select a from t where " + " or ".join(f"a = {n}" for n in range(1000))
    assert view_after(query, "a", "z").count("z = ") == 1000


def test_a_view_passes_the_new_name_on_to_its_readers():
    made = after_column(
        "create table t (a integer, b integer);"
        "create view one as select a, b from t; create view two as select * from one;"
        "create view three as select two.a + 1 as x from two where a > 0;"
        "create view listed (a) as select a from t; create view reads as select a from listed;"
        "create table mv (a integer, primary key (a)) maintained as select a from t;"
        "create view late as select a from mv;"
        "create assertion ok check (not exists (select 1 from two where a < 0))",
        "a",
        "z",
    )
    assert body(made, "one") == "select z, b from t"
    assert body(made, "three") == "select two.z + 1 as x from two where z > 0"
    assert (body(made, "listed"), body(made, "reads")) == ("select z from t", "select a from listed")
    assert [column.name for column in made.table("main", "mv").columns] == ["z"]
    assert body(made, "late") == "select z from mv"
    assertion = made.schema("main").assertions["ok"].expression
    assert render(assertion) == "not exists (select 1 from two where z < 0)"


def test_a_tables_own_expressions():
    made = after_column(
        "create table t (a integer, b integer default (new.a + (select max(x.a) from u as x)),"
        " g integer generated always as (a + t.a) stored, check (a > 0 and new.a > old.a and t.a < 9),"
        " constraint u check (exists (select 1 from u where u.a = t.a)), unique (a), unique (b, a), constraint named unique (a));"
        "create table u (a integer, check ((select count(a) from t) < 5));"
        "create index i on t (b) where a > 1 and t.a < 5",
        "a",
        "z",
    )
    t = made.table("main", "t")
    assert [c.name for c in t.columns] == ["z", "b", "g"]
    assert render(t.columns[1].default) == "new.z + (select max(x.a) from u as x)"
    assert render(t.columns[2].generated) == "z + t.z"
    assert render(t.checks[0].expression) == "z > 0 and new.z > old.z and t.z < 9"
    assert render(t.checks[1].expression) == "exists (select 1 from u where u.a = t.z)"
    assert render(t.index("i").where) == "z > 1 and t.z < 5"
    assert [(u.name, u.index) for u in t.unique_constraints] == [
        ("_uc_z", "_uc_z"),
        ("_uc_b_z", "_uc_b_z"),
        ("named", "named"),
    ]
    assert [index.name for index in t.indexes] == ["_uc_z", "_uc_b_z", "named", "i"]
    assert render(made.table("main", "u").checks[0].expression) == "(select count(z) from t) < 5"


def test_a_table_called_new_is_no_row():
    made = after_column(
        "create table new (a integer); create table t (a integer, check (new.a > 0), check ((select max(new.a) from new) > 0))",
        "a",
        "z",
    )
    first, second = made.table("main", "t").checks
    assert render(first.expression) == "new.z > 0"
    assert render(second.expression) == "(select max(new.a) from new) > 0"


def test_foreign_keys_follow_their_parent():
    script = (
        "create table t (a integer primary key, b integer references t(a));"
        "create table temp.c (x integer references main.t(a)); create table d (x integer references t)"
    )
    made = after_column(script, "a", "z")
    assert made.table("main", "t").foreign_keys[0].parent_columns == ("z",)
    assert made.table("temp", "c").foreign_keys[0].parent_columns == ("z",)
    made = after_table(script, "p")
    keys = [
        made.table(schema, name).foreign_keys[0]
        for schema, name in (("main", "p"), ("temp", "c"), ("main", "d"))
    ]
    assert [(key.name, key.parent_schema, key.parent_table) for key in keys] == [
        ("_fk_t_b", None, "p"),
        ("_fk_c_x", "main", "p"),
        ("_fk_d_x", None, "p"),
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select t.a from t", "select n.a from n"),
        ("select T.* from T", "select n.* from n"),
        ("select x.a from main.t as x", "select x.a from main.n as x"),
        ("with t as (select 1 as z) select z from t", "with t as (select 1 as z) select z from t"),
        (
            "with t as (select a from main.t) select t.a from t",
            "with t as (select a from main.n) select t.a from t",
        ),
        ("with n as (select 1 as z) select t.a from t", "with n as (select 1 as z) select n.a from main.n"),
        (
            "select t.a from t join u as n on n.a = t.a",
            "select t.a from n as t inner join u as n on n.a = t.a",
        ),
        ('select "temp".t.a from "temp".t', 'select "temp".t.a from "temp".t'),
        ("select c from u where a in (select t.a from t)", "select c from u where a in (select n.a from n)"),
    ],
)
def test_tables_in_queries(query, expected):
    tables = (
        "create table t (a integer); create table temp.t (a integer); create table u (a integer, c integer);"
    )
    assert body(after_table(f"{tables} create view v as {query}", "n"), "v") == expected


def test_a_new_name_that_another_table_would_catch_gets_its_schema():
    made = catalog(
        "create table temp.other (z integer); create table k (z integer);"
        "create view temp.r as select z from k; create view temp.o as select z from other"
    )
    made = rename.rename_table(made, made.table("temp", "other"), "k")
    assert body(made, "r", "temp") == "select z from main.k"
    assert body(made, "o", "temp") == "select z from k"


def test_a_tables_qualifiers_and_names():
    made = after_table(
        "create table t (a integer, check (t.a > 0), g integer generated always as (t.a) stored, unique (a));"
        "create index i on t (a) where t.a > 1; create assertion ok check ((select count(*) from t) < 9)",
        "n",
    )
    n = made.table("main", "n")
    assert made.table("main", "t") is None
    assert render(n.checks[0].expression) == "n.a > 0"
    assert render(n.columns[1].generated) == "n.a"
    assert render(n.index("i").where) == "n.a > 1"
    assert n.unique_constraints[0].name == "_uc_a"
    assert render(made.schema("main").assertions["ok"].expression) == "(select count(*) from n) < 9"


def test_what_does_not_refer_to_the_renamed_thing_stays_the_same_object():
    made = catalog(
        "create table t (a integer); create table o (a integer, check (a > 0)); create view v as select a from o"
    )
    after = rename.rename_column(made, made.table("main", "t"), "a", "z")
    assert after.table("main", "o") is made.table("main", "o")
    assert after.view("main", "v") is made.view("main", "v")


@pytest.mark.parametrize(
    ("script", "old", "new", "message"),
    [
        ("", "q", "z", "Column 'q' not found in table 't'"),
        ("", "a", "B", "Column 'B' already exists in table 't'"),
        (
            "create view v as select a, 1 as z from t;",
            "a",
            "z",
            "cannot rename column 't.a' to 'z': view 'main.v' already publishes a column named 'z' and also republishes the renamed column, so following the rename would make it publish two 'z' columns. Alias one of the two in the view's body, or choose a different name.",
        ),
        (
            "create view w as select a from t; create table m (a integer, z integer) maintained as select w.a, 1 as z from w;",
            "a",
            "z",
            "cannot rename column 't.a' to 'z': materialized view 'main.m' already publishes a column named 'z' and also republishes the renamed column (through 'w'), so following the rename would make it publish two 'z' columns. Alias one of the two in the materialized view's body, or choose a different name.",
        ),
        (
            "create index _uc_z on t (b);",
            "a",
            "z",
            "Cannot rename column 'a' to 'z' on table 't': its backing index '_uc_z' would collide with existing index '_uc_z' on the same table. Rename the constraint or the index.",
        ),
    ],
)
def test_refused_renames(script, old, new, message):
    with pytest.raises(Error) as caught:
        after_column(f"create table t (a integer unique, b integer); {script}", old, new)
    assert caught.value.message == message


def test_a_change_of_case_alone():
    made = after_column("create table t (a integer unique); create view v as select a from t", "a", "A")
    assert made.table("main", "t").columns[0].name == "A"
    assert made.table("main", "t").unique_constraints[0].name == "_uc_A"
    assert body(made, "v") == "select a from t"
    with pytest.raises(Error, match="Table 'T' already exists"):
        after_table("create table t (a integer)", "T")
