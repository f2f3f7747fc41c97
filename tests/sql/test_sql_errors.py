# ruff: noqa: E501 - statements and messages stay whole
"""Parse errors: message, position, and what still runs before them."""

import pytest

from quereus_store.errors import Error, StatusCode
from quereus_store.sql import iter_statements, parse_expression, parse_script, parse_statement

STATEMENT = "Expected statement type (SELECT, INSERT, UPDATE, DELETE, VALUES, CREATE, etc.), got '{}'."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # queries, section 1
        ("select 1 is null = 0", STATEMENT.format("=") + " (at line 1, column 18)"),
        ("select nick key from crew", STATEMENT.format("key") + " (at line 1, column 13)"),
        (
            "select 1 from t\non x",
            STATEMENT.format("on")
            + " 'ON' must follow a JOIN. Use WHERE for filters in subqueries. (at line 2, column 1)",
        ),
        ("select 1 for update", STATEMENT.format("for") + " (at line 1, column 10)"),
        ("select * from t for update", STATEMENT.format("for") + " (at line 1, column 17)"),
        ("select * from t for update of t", STATEMENT.format("for") + " (at line 1, column 17)"),
        ("select * from t for no key update", STATEMENT.format("for") + " (at line 1, column 17)"),
        ("select * from t x for share", STATEMENT.format("for") + " (at line 1, column 19)"),
        (
            "select 1 from (select 2 from t for update) x",
            "Expected ')' after subquery. Unterminated '(' opened at line 1, column 15. Got 'for'. "
            "(at line 1, column 15)",
        ),
        (
            "select abs(1",
            "Expected ')' after function arguments. Unterminated '(' opened at line 1, column 11. "
            "Got 'end of input'. (at line 1, column 11)",
        ),
        (
            "select (1 2)",
            "Expected ')' after expression. Unterminated '(' opened at line 1, column 8. Got '2'. "
            "(at line 1, column 8)",
        ),
        (
            "select a in (1 2)",
            "Expected ')' after IN values. Unterminated '(' opened at line 1, column 13. Got '2'. "
            "(at line 1, column 13)",
        ),
        (
            "select cast(a as text x)",
            "Expected ')' after CAST expression type. Unterminated '(' opened at line 1, column 12. Got 'x'. "
            "(at line 1, column 12)",
        ),
        (
            "select rank() over (5)",
            "Expected ')' after window specification. Unterminated '(' opened at line 1, column 20. Got '5'. "
            "(at line 1, column 20)",
        ),
        # section 2
        ("select 1 in t", "Expected '(' after IN. Got 't'. (at line 1, column 13)"),
        ("select 1 not in t", "Expected '(' after NOT IN. Got 't'. (at line 1, column 17)"),
        ("select 1 between 2 3", "Expected 'AND' after BETWEEN lower bound. Got '3'. (at line 1, column 20)"),
        (
            "select 1 not between 2 3",
            "Expected 'AND' after NOT BETWEEN lower bound. Got '3'. (at line 1, column 24)",
        ),
        ("select a collate 5", "Expected collation name after COLLATE. Got '5'. (at line 1, column 18)"),
        # sections 3 to 6
        ("select", "Expected expression. (at line 1, column 7)"),
        ("select 1 as 5", "Expected identifier or string after 'AS'. (at line 1, column 13)"),
        ("select * from t as 5", "Expected alias after 'AS'. (at line 1, column 20)"),
        ("select * from 5", "Expected table name. (at line 1, column 15)"),
        ("select * from t join u", "Expected 'ON' or 'USING' after JOIN. (at line 1, column 23)"),
        ("select * from t left u", "Expected 'JOIN'. Got 'u'. (at line 1, column 22)"),
        ("select * from t join u using x", "Expected '(' after 'USING'. Got 'x'. (at line 1, column 30)"),
        (
            "select * from t join u on 1 exists as f",
            "'exists ... as' is not valid on an INNER join (no side is null-extended, so the flag would be a "
            "constant true) (at line 1, column 29)",
        ),
        (
            "select * from t left join u on 1 exists left as f",
            "'exists left as' references the preserved side of a LEFT join; only the non-preserved side (right) "
            "has a meaningful match flag (at line 1, column 34)",
        ),
        (
            "select * from t full join u on 1 exists as f",
            "'exists as' is ambiguous on a FULL join — specify 'exists left as' or 'exists right as' "
            "(at line 1, column 34)",
        ),
        # sections 9 to 11
        ("select 1 order a", "Expected 'BY' after 'ORDER'. Got 'a'. (at line 1, column 16)"),
        ("select 1 group a", "Expected 'BY' after 'GROUP'. Got 'a'. (at line 1, column 16)"),
        ("select 1 order by 1 nulls x", "Expected 'FIRST' or 'LAST' after 'NULLS'. (at line 1, column 27)"),
        (
            "select 1 union 2",
            "Expected SELECT, VALUES, a DML statement, or '(' to begin a query operand. (at line 1, column 16)",
        ),
        (
            "select 1 diff exists left as l select 2",
            "'exists <branch> as' membership columns are not valid on DIFF — symmetric difference desugars to "
            "two EXCEPTs, so branch membership is ambiguous (at line 1, column 15)",
        ),
        ("with as (select 1) select 1", "Expected CTE name. (at line 1, column 6)"),
        (
            "with c (1) as (select 1) select 1",
            "Expected column name in CTE definition. (at line 1, column 9)",
        ),
        ("with c select 1", "Expected 'AS' after CTE name. Got 'select'. (at line 1, column 8)"),
        ("with c as select 1", "Expected '(' before CTE query. Got 'select'. (at line 1, column 11)"),
        ("with c as not (select 1) select 1", "Expected 'MATERIALIZED' after 'NOT'. (at line 1, column 15)"),
        (
            "with c as (select 1), C as (select 2) select 1",
            "Duplicate CTE name 'C' in WITH clause (at line 1, column 23)",
        ),
        (
            "with c as (select 1) create table t (a)",
            "WITH clause cannot be used with createTable statement. (at line 1, column 22)",
        ),
        (
            "with c as (select 1) option 5 select 1",
            "Expected '(' after OPTION. Got '5'. (at line 1, column 29)",
        ),
        (
            "with c as (select 1) option (x 1) select 1",
            "Expected MAXRECURSION in OPTION clause. (at line 1, column 30)",
        ),
        (
            "with c as (select 1) option (maxrecursion x) select 1",
            "Expected integer value after MAXRECURSION. (at line 1, column 43)",
        ),
        # section 12
        (
            "select * from (delete from t)",
            "DELETE in a relation position must have a RETURNING clause. (at line 1, column 16)",
        ),
        # section 13
        (
            "select f() over (order by 1 rows unbounded x)",
            "Expected PRECEDING or FOLLOWING after UNBOUNDED. (at line 1, column 44)",
        ),
        (
            "select f() over (order by 1 rows 1 x)",
            "Expected PRECEDING or FOLLOWING after frame value. (at line 1, column 36)",
        ),
        (
            "select f() over (order by 1 rows current x)",
            "Expected 'ROW' after 'CURRENT'. (at line 1, column 42)",
        ),
        (
            "select f() over (order by 1 rows between 1 preceding x)",
            "Expected 'AND' after frame start bound. (at line 1, column 54)",
        ),
        ("select f() over (partition a)", "Expected 'BY' after 'PARTITION'. (at line 1, column 28)"),
        # section 14
        (
            "select * with inverse (a = 1) from t",
            "WITH INVERSE cannot apply to a '*' result column. (at line 1, column 10)",
        ),
        (
            "select a with inverse (b = 1, B = 2) from t",
            "Duplicate column 'B' in WITH INVERSE. (at line 1, column 31)",
        ),
        ("select a with inverse () from t", "Expected column name in WITH INVERSE. (at line 1, column 24)"),
        # section 17
        (
            "select count(distinct *)",
            "'*' cannot be used with other arguments in function call. (at line 1, column 23)",
        ),
        ("select case 1 end", "CASE expression must have at least one WHEN clause. (at line 1, column 15)"),
        (
            "select case when 1 2 end",
            "Expected 'THEN' after WHEN condition in CASE expression. (at line 1, column 20)",
        ),
        ("select case when 1 then 2", "Expected 'END' to terminate CASE expression. (at line 1, column 26)"),
        ("select cast(a text)", "Expected 'AS' in CAST expression. (at line 1, column 15)"),
        ("select :", "Expected identifier or number after parameter prefix. (at line 1, column 8)"),
        # data modification
        ("insert into", "Expected table name. (at line 1, column 12)"),
        ("insert into t () values (1)", "Expected column name. (at line 1, column 16)"),
        (
            "insert into t x",
            "Expected VALUES, SELECT, or DML (with RETURNING) after INSERT. (at line 1, column 15)",
        ),
        (
            "insert or x into t values (1)",
            "Expected conflict resolution (ROLLBACK, ABORT, FAIL, IGNORE, REPLACE) after OR. (at line 1, column 11)",
        ),
        (
            "insert or ignore into t values (1) on conflict do nothing",
            "Cannot use both 'INSERT OR ...' and 'ON CONFLICT' in the same statement. (at line 1, column 36)",
        ),
        (
            "insert into t values (1) on conflict (a) x",
            "Expected 'DO' after ON CONFLICT [columns]. (at line 1, column 42)",
        ),
        (
            "insert into t with context a = 1 values (1) with context b = 2",
            "Duplicate WITH CONTEXT clause (at line 1, column 45)",
        ),
        ("update t x 1", "Expected 'SET' after table name in UPDATE. Got '1'. (at line 1, column 12)"),
        ("update t set 1", "Expected column name in SET clause. (at line 1, column 14)"),
        ("update t set (a, b) = (1, 2, 3)", "2 columns assigned 3 values (at line 1, column 14)"),
        (
            "delete from (select 1 as a) where a",
            "a subquery UPDATE/DELETE write target requires an alias, e.g. (select …) as v (at line 1, column 13)",
        ),
        # schema
        (
            "create thing",
            "Expected TABLE, [UNIQUE] INDEX, VIEW, MATERIALIZED VIEW, ASSERTION, or VIRTUAL after CREATE. "
            "(at line 1, column 8)",
        ),
        ("create temp table t (a)", "TEMP/TEMPORARY is not supported. (at line 1, column 8)"),
        (
            "create table t (a integer primary key autoincrement)",
            "AUTOINCREMENT is not supported. Quereus uses key-based addressing without implicit side-effects. "
            "(at line 1, column 39)",
        ),
        ("create table t ()", "Expected column name. (at line 1, column 17)"),
        (
            "create table t (a) with tags (x = 1) with tags (y = 2)",
            "Duplicate WITH TAGS clause (at line 1, column 38)",
        ),
        (
            "create table t (a) with tags (x = x'00')",
            "Expected tag value (string, number, true, false, or null). (at line 1, column 35)",
        ),
        ("create table t (a) without rowid", STATEMENT.format("without") + " (at line 1, column 20)"),
        (
            "create view v as insert into t values (1) returning a",
            "INSERT cannot be used as a view body — a view re-evaluates on every reference, which would re-drive "
            "the write. Move the mutation into the statement that references the view. (at line 1, column 18)",
        ),
        (
            "create table t maintained () as select 1",
            "Expected at least one column name in the maintained column list. (at line 1, column 30)",
        ),
        (
            "drop trigger t",
            "Expected TABLE, VIEW, MATERIALIZED VIEW, INDEX, or ASSERTION after DROP. (at line 1, column 6)",
        ),
        (
            "declare lens for x over y { view t as values (1) }",
            "A lens override body must be a SELECT; got 'values'. (at line 1, column 39)",
        ),
    ],
)
def test_messages(text: str, message: str):
    with pytest.raises(Error) as caught:
        parse_statement(text)
    assert str(caught.value) == message
    assert caught.value.code is StatusCode.ERROR


def test_writes_in_an_inner_with_are_refused():
    with pytest.raises(Error) as caught:
        parse_statement("select (with x as (delete from t returning 1) select 1)")
    assert caught.value.message.startswith(
        "WITH member 'x' is data-modifying (DELETE), which is only allowed in"
    )
    assert caught.value.column == 14


def test_statements_before_an_error_can_still_run():
    statements = iter_statements("select 1; select 2; selec 3")
    assert next(statements) is not None
    assert next(statements) is not None
    with pytest.raises(Error, match=r"got 'selec'\. \(at line 1, column 21\)"):
        next(statements)


def test_a_lexical_error_anywhere_stops_everything():
    statements = iter_statements("select 1; select 'x")
    with pytest.raises(Error, match="Unterminated string"):
        next(statements)


def test_one_statement_means_one():
    with pytest.raises(Error, match="got several"):
        parse_statement("select 1; select 2")
    with pytest.raises(Error, match="got 'end of input'"):
        parse_statement("  ;; ")
    assert parse_script(" ;; ") == ()


def test_an_expression_must_end():
    with pytest.raises(Error, match=r"Expected end of input\. Got 'b'\. \(at line 1, column 3\)"):
        parse_expression("a b")


def test_depth_is_limited_by_an_error_of_the_language():
    with pytest.raises(Error) as caught:
        parse_statement("select " + "(" * 5000 + "1" + ")" * 5000)
    assert caught.value.code is StatusCode.TOOBIG
    assert caught.value.position is not None
