"""CREATE statements become schema objects, or are refused with the message that says why."""

# ruff: noqa: E501 - messages are quoted whole

import pytest

from quereus_store.errors import Error, StatusCode
from quereus_store.schema.builder import Surroundings, TableSettings, check_columns
from quereus_store.schema.objects import (
    CollationRank,
    ConflictAction,
    KeyPart,
    Operation,
    PrimaryKey,
    ReferentialAction,
)
from quereus_store.sql.parser import parse_statement
from quereus_store.types import ANY, DATE, INTEGER, REAL, TEXT
from tests.schema.support import index, table


def refused(sql, **options):
    with pytest.raises(Error) as caught:
        table(sql, **options)
    return caught.value


def test_columns():
    t = table(
        "create table t (a integer, b varchar(9) null default 'x' with tags (k = 1), c, d date(3) collate binary,"
        " e double precision not null on conflict ignore)"
    )
    assert [c.type for c in t.columns] == [INTEGER, TEXT, ANY, DATE, REAL]
    assert [c.nullable for c in t.columns] == [False, True, False, False, False]
    assert t.columns[1].declared_type == "varchar(9)"
    assert t.columns[1].tags == {"k": 1}
    assert t.columns[3].collation_rank is CollationRank.DECLARED
    assert t.columns[4].not_null_conflict is ConflictAction.IGNORE


def test_the_session_fills_what_is_left_open():
    settings = TableSettings(nullable_by_default=True, default_collation="nocase", default_module="store")
    t = table("create table t (a integer, b text, c text collate rtrim, d json not null)", settings=settings)
    assert [c.nullable for c in t.columns] == [True, True, True, False]
    assert [c.collation for c in t.columns] == ["BINARY", "NOCASE", "RTRIM", "BINARY"]
    assert t.module == "store"


def test_the_later_of_null_and_not_null_counts():
    t = table("create table t (a integer not null null, b integer null not null)")
    assert [c.nullable for c in t.columns] == [True, False]


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("(a integer primary key, b text)", PrimaryKey((KeyPart(0),))),
        ("(a integer primary key desc, b text primary key)", PrimaryKey((KeyPart(0, True), KeyPart(1)))),
        (
            "(a text collate nocase, b text, primary key (b desc, a) on conflict replace)",
            PrimaryKey((KeyPart(1, True), KeyPart(0, False, "NOCASE")), conflict=ConflictAction.REPLACE),
        ),
        ("(a integer, b text)", PrimaryKey((KeyPart(0), KeyPart(1)), declared=False)),
        ("(a integer, primary key ())", PrimaryKey(())),
        ("(a text, primary key (a collate rtrim))", PrimaryKey((KeyPart(0, False, "RTRIM"),))),
    ],
)
def test_keys(sql, key):
    assert table(f"create table t {sql}").primary_key == key


def test_membership_in_a_key_does_not_forbid_null():
    assert table("create table t (a integer null primary key)").columns[0].nullable


def test_using_chooses_the_collation_of_text_keys_that_name_none():
    t = table(
        "create table t (a text, b text collate rtrim, c text, primary key (a, b)) using store(collation = 'nocase')"
    )
    assert [c.collation for c in t.columns] == ["NOCASE", "RTRIM", "BINARY"]
    assert [part.collation for part in t.primary_key.parts] == ["NOCASE", "RTRIM"]
    assert "no such collation sequence: REV" in str(
        refused("create table t (a text primary key) using store(collation = 'rev')")
    )


def test_constraints_get_their_names():
    t = table(
        "create table t (a integer check (a > 0) check (a < 9) references p, b text unique,"
        " constraint _check_a_2 check (b <> ''), check on delete, insert (a = 1), unique (b, a),"
        " constraint bar unique (a), foreign key (a, b) references x.q(c, d) on delete cascade on update set null)"
    )
    assert [(c.name, c.named, c.positional) for c in t.checks] == [
        ("_check_a", False, False),
        ("_check_a_3", False, False),
        ("_check_a_2", False, False),
        ("_check_3", False, True),
    ]
    assert t.checks[3].operations == {Operation.DELETE, Operation.INSERT}
    assert [(u.name, u.named, u.columns, u.index) for u in t.unique_constraints] == [
        ("_uc_b", False, (1,), "_uc_b"),
        ("_uc_b_a", False, (1, 0), "_uc_b_a"),
        ("bar", True, (0,), "bar"),
    ]
    assert [(i.name, i.hidden, i.unique) for i in t.indexes] == [
        ("_uc_b", True, True),
        ("_uc_b_a", True, True),
        ("bar", True, True),
    ]
    assert [(k.name, k.parent_schema, k.parent_table, k.parent_columns) for k in t.foreign_keys] == [
        ("_fk_t_a", None, "p", None),
        ("_fk_t_a_b", "x", "q", ("c", "d")),
    ]
    assert t.foreign_keys[1].on_delete is ReferentialAction.CASCADE
    assert t.foreign_keys[1].on_update is ReferentialAction.SET_NULL


@pytest.mark.parametrize(
    ("definition", "code", "message"),
    [
        ("(a integer, A text)", "ERROR", "Duplicate column name: A"),
        ("(a integer) using nowhere", "ERROR", "No virtual table module named 'nowhere'"),
        (
            "(a text collate rev)",
            "ERROR",
            "Unknown collation 'rev' for type 'TEXT' on column 'a' (expected one of: BINARY, NOCASE, RTRIM, or a"
            " registered collation)",
        ),
        (
            "(a json collate nocase)",
            "ERROR",
            "Unknown collation 'nocase' for type 'JSON' on column 'a' (type supports no collation other than BINARY)",
        ),
        (
            "(a integer default 1 generated always as (2))",
            "ERROR",
            "Column 'a' cannot have both DEFAULT and GENERATED ALWAYS AS",
        ),
        (
            "(a integer primary key, primary key (a))",
            "CONSTRAINT",
            "Cannot define both table-level and column-level PRIMARY KEYs",
        ),
        (
            "(a integer, primary key (a), primary key (a))",
            "CONSTRAINT",
            "Multiple table-level PRIMARY KEY constraints defined",
        ),
        ("(a integer, primary key (b))", "ERROR", "PRIMARY KEY column 'b' not found in table definition"),
        ("(a integer, foreign key (b) references p)", "ERROR", "FK column 'b' not found in table 't'"),
        (
            "(a integer, constraint f foreign key (a) references p(x, y))",
            "ERROR",
            "FK constraint 'f' on table 't': child column count (1) does not match parent column count (2)",
        ),
        ("(a integer, unique (a, z))", "ERROR", "UNIQUE constraint column 'z' not found"),
        (
            "(a integer, g integer generated always as (q + 1))",
            "ERROR",
            "Column 'q' referenced by generated column 'g' not found in table 't'",
        ),
        (
            "(a integer, g integer generated always as (o.a))",
            "ERROR",
            "'o.a' referenced by generated column 'g' in table 't' binds nothing: a generated expression computes"
            " from the row being written, so it may only name this table's own columns (bare, 't.', or 'new.') or"
            " columns of a source it selects from",
        ),
        (
            "(x integer, a integer generated always as (b), b integer generated always as (a + x))",
            "ERROR",
            "Cyclic dependency in generated columns: 'a', 'b'",
        ),
        (
            "(a integer default (?))",
            "ERROR",
            "DEFAULT for column 'a' in table 't' may not reference bind parameters.",
        ),
        (
            "(a integer, b integer default (a + 1))",
            "ERROR",
            "DEFAULT for column 'b' in table 't' may not reference a bare column; use 'new.<column>' to read a value"
            " supplied by the INSERT, or a generated column instead.",
        ),
        (
            "(a integer check (a > :p))",
            "ERROR",
            "CHECK constraint '_check_a' on table 't' may not reference bind parameters.",
        ),
        (
            "(a integer default 'abc')",
            "MISMATCH",
            "Type conversion failed for column 'a': Cannot convert 'abc' to INTEGER",
        ),
        (
            "(a integer, constraint x check (a > 1), constraint X unique (a))",
            "CONSTRAINT",
            "Cannot create table 't': duplicate constraint name 'X' — constraint names must be unique within a"
            " table (case-insensitive, across CHECK / UNIQUE / FOREIGN KEY)",
        ),
        (
            "(a integer unique, b integer, unique (A))",
            "CONSTRAINT",
            "Cannot create table 't': an equivalent UNIQUE constraint on (a) already exists.",
        ),
        (
            "(a integer, b integer, unique (a, b), unique (b, a))",
            "CONSTRAINT",
            "Cannot create table 't': an equivalent UNIQUE constraint on (b, a) already exists.",
        ),
        (
            "(a integer, b integer, a_b integer unique, unique (a, b))",
            "CONSTRAINT",
            "Cannot create table 't': the UNIQUE constraint on (a_b) and the UNIQUE constraint on (a, b) both derive"
            " backing structure name '_uc_a_b'. Name or rename one of them — an unnamed one derives its structure"
            " name from the columns it covers.",
        ),
    ],
)
def test_refusals(definition, code, message):
    modules = Surroundings(find_module={"memory": "memory"}.get)
    error = refused(f"create table t {definition}", surroundings=modules)
    assert (error.code, error.message) == (StatusCode[code], message)
    assert error.line == 1, "every error knows its place"


def test_what_looks_wrong_but_is_not():
    table("create table t (a text unique, constraint u unique (a))")
    table(
        "create table t (a integer, b integer default (new.a + 1), c integer default (select max(x) from u))"
    )
    table("create table t (a text default who) with context (who text)")
    table(
        "create table t (a integer, g integer generated always as ((select max(u.x) from u where u.y = t.a)))"
    )
    table("create table t (a integer default null, b integer default '12', c integer default -1)")
    check_columns(parse_statement("create table t (a integer, b integer)"))


def test_the_callers_own_checks_come_before_literal_defaults_and_names():
    def check(built):
        raise ZeroDivisionError(built.name)

    with pytest.raises(ZeroDivisionError, match="t"):
        table("create table t (a integer default 'x')", surroundings=Surroundings(check_expressions=check))


def test_index_parts():
    t = table("create table t (a text collate nocase null, b integer)")
    built = index(
        t, "create unique index i on t (a desc, b, a collate binary, (b + 1)) where b > 1 with tags (k = 'v')"
    )
    assert [(p.column, p.descending, p.collation, p.collation_explicit) for p in built.parts] == [
        (0, True, "NOCASE", False),
        (1, False, "BINARY", False),
        (0, False, "BINARY", True),
        (None, False, "BINARY", False),
    ]
    assert [(p.type, p.nullable) for p in built.parts[:2]] == [(TEXT, True), (INTEGER, False)]
    assert (built.unique, built.hidden, built.tags) == (True, False, {"k": "v"})


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("(z)", "Column 'z' not found in table 't'"),
        ("(a collate rev)", "no such collation sequence: REV"),
        ("(a) where z > 1", "Partial-index predicate references unknown column 'z'"),
        (
            "(a) where o.a > 1",
            "Partial-index predicate cannot reference column 'o.a' of a different table (predicate is scoped to 't')",
        ),
        (
            "(a) where a > (select 1)",
            "Unsupported expression in partial-index predicate: subquery",
        ),
        ("((z + 1))", "Column 'z' not found in table 't'"),
    ],
)
def test_indexes_that_are_refused(rest, message):
    t = table("create table t (a text)")
    with pytest.raises(Error) as caught:
        index(t, f"create index i on t {rest}")
    assert caught.value.message == message
