"""Errors of rows tell a program where their statement begins and what the constraint was about."""

import pytest

import quereus_store


@pytest.mark.parametrize(
    ("sql", "columns", "values"),
    [
        ("insert into t values (1, 2, 'new')", ("id",), (1,)),
        ("insert into t values (5, 9, 'x')", ("v", "id"), (9, 5)),
        ("insert into t values (5, 1, 'a')", ("s",), ("a",)),
        ("update t set v = -1", ("v", "id"), (-1, 1)),
    ],
)
def test_a_constraint(sql: str, columns: tuple[str, ...], values: tuple[object, ...]) -> None:
    with quereus_store.connect(":memory:") as con:
        con.execute(
            "create table t (id integer primary key, v integer check (v > 0 and v < id + 4), s text unique)"
        )
        con.execute("insert into t values (1, 1, 'a')")
        with pytest.raises(quereus_store.IntegrityError) as caught:
            con.executescript(f"select 1;\n  {sql}")
        assert (caught.value.line, caught.value.column) == (2, 3)
        assert "line" not in str(caught.value)
        assert caught.value.details["columns"] == columns
        assert caught.value.details["values"] == values


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
