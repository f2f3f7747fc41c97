"""Errors of rows tell a program where their statement begins and what the constraint was about."""

from pathlib import Path

import pytest

import quereus_store

SCHEMA = """
create table p (id integer primary key, code text null);
create table t (
    id integer primary key, v integer check (v > 0 and v < 100), s text null,
    p integer null constraint to_p references p (id),
    constraint once unique (s, v), constraint small check (v < id + 50)
);
create table owned (id integer primary key, p integer references p (id) on delete cascade);
create assertion lucky check (not exists (select 1 from t where v = 13));
insert into p values (1, 'a'), (2, null);
insert into t values (1, 1, 'a', 1), (2, 1, 'b', null), (3, 7, 'a', null);
"""

VIOLATIONS = {
    "insert into t values (1, 2, 'x', null)": ("t", "primary key", None, ("id",), (1,)),
    "update t set id = 2 where id = 1": ("t", "primary key", None, ("id",), (2,)),
    "insert into t values (5, null, 'x', null)": ("t", "not null", None, ("v",), None),
    "insert into t values (5, 1, 'a', null)": ("t", "unique", "once", ("s", "v"), ("a", 1)),
    "insert into t values (5, 500, 'x', null)": ("t", "check", "_check_v", ("v",), (500,)),
    "update t set v = 60 where id = 2": ("t", "check", "small", ("v", "id"), (60, 2)),
    "insert into t values (5, 6, 'x', 9)": ("t", "foreign key", "to_p", ("p",), (9,)),
    "delete from p": ("t", "foreign key", "to_p", ("p",), (1,)),
    "update p set id = 7 where id = 1": ("t", "foreign key", "to_p", ("p",), (1,)),
    "insert into t values (5, 13, 'x', null)": (None, "assertion", "lucky", None, ((5,),)),
    "create unique index i on t (s)": ("t", "unique", "i", ("s",), ("a",)),
    "alter table t add constraint u unique (v)": ("t", "unique", "u", ("v",), (1,)),
    "alter table t add constraint f foreign key (v) references p (id)": (
        "t",
        "foreign key",
        "f",
        ("v",),
        (7,),
    ),
    "alter table t alter primary key (v)": ("t", "primary key", None, ("v",), (1,)),
    "alter table p alter column code set not null": ("p", "not null", None, ("code",), None),
    "alter table t add column w integer default (nullif(new.v, 7))": ("t", "not null", None, ("w",), None),
    "alter table t add column w integer default 5 check (w > 9)": ("t", "check", "_check_w", ("w",), None),
}
"""Table, kind, name, columns and values that the error of a statement tells."""


@pytest.mark.parametrize("sql", VIOLATIONS)
@pytest.mark.parametrize("path", [None, "db"])
def test_a_constraint(sql: str, path: str | None, tmp_path: Path) -> None:
    with quereus_store.connect(":memory:" if path is None else tmp_path / path) as con:
        con.executescript(SCHEMA)
        with pytest.raises(quereus_store.IntegrityError) as caught:
            con.executescript(f"select 1;\n  {sql}")
        table, kind, name, columns, values = VIOLATIONS[sql]
        assert (caught.value.line, caught.value.column) == (2, 3)
        details = caught.value.details
        assert (details.get("table"), details["kind"], details["constraint"]) == (table, kind, name)
        assert details["schema"] == "main"
        assert details.get("columns") == columns
        assert details.get("values") == values


def test_a_check_that_fails_at_the_commit() -> None:
    with quereus_store.connect(":memory:") as con:
        con.execute(
            "create table t (id integer primary key, v integer, check ((select count(*) from t) < v))"
        )
        con.execute("begin")
        con.execute("insert into t values (1, 1)")
        with pytest.raises(quereus_store.IntegrityError) as caught:
            con.execute("  commit")
        assert (caught.value.line, caught.value.column) == (1, 3)
        assert caught.value.details["values"] == (1,)


@pytest.mark.parametrize(
    "sql",
    [
        "select s + 1 from t",
        "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n",
        "select s like 'a' escape 'ab' from t",
        "update t set s = s * 2",
        "select count(*) from t group by s + 1",
    ],
)
@pytest.mark.parametrize("within", [False, True])
def test_a_computation(sql: str, within: bool) -> None:
    """What fails when rows are computed is told where the statement begins, in a transaction too."""
    with quereus_store.connect(":memory:") as con:
        con.execute("create table t (id integer primary key, s text)")
        con.execute("insert into t values (1, '2024-01-31')")
        if within:
            con.execute("begin")
        with pytest.raises(quereus_store.Error) as caught:
            con.execute(f"-- first\n  {sql}").fetchall()
        assert (caught.value.line, caught.value.column) == (2, 3)
        assert "line" not in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        "apply schema hinted options (rename_policy = 'require-hint')",
        "create table child (x text collate rtrim references parent (k))",
        "create table nowhere (id integer) using default_module",
        "pragma foreign_keys = maybe",
        "alter table parent drop column nothing",
    ],
)
def test_an_error_of_a_schema_change_knows_where_the_statement_begins(statement: str) -> None:
    connection = quereus_store.connect(":memory:")
    connection.execute("create table parent (k text collate nocase primary key)")
    connection.execute("declare schema hinted { table a { id integer primary key } }")
    connection.execute("apply schema hinted")
    connection.execute("declare schema hinted { table b { id integer primary key } }")
    with pytest.raises(quereus_store.Error) as caught:
        connection.execute(f"\n  {statement}")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("sql", "column"),
    [("select * from wide", 15), ("select  1 from (select id from narrow)", 32)],
)
def test_an_error_in_the_body_of_a_view_stands_where_the_statement_names_the_view(
    sql: str, column: int
) -> None:
    with quereus_store.connect(":memory:") as con:
        con.executescript("""
            create table t (id integer primary key);
            create view wide as select 1 as one, 2 as two, 3 as three, 4 as four, id from t;
            create view narrow as select one, id from wide;
            drop table t;
        """)
        with pytest.raises(quereus_store.ProgrammingError, match="Table 't' not found") as caught:
            con.execute(sql)
        assert (caught.value.line, caught.value.column) == (1, column)
