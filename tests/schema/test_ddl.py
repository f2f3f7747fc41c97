"""Objects written as statements and read back are the same objects."""

# ruff: noqa: E501 - statements are quoted whole

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.schema.builder import TableSettings, build_index, build_table, build_view
from quereus_store.schema.constraints import add_index
from quereus_store.schema.ddl import (
    SessionForm,
    assertion_ddl,
    index_ddl,
    index_tags_ddl,
    table_bundle,
    table_ddl,
    view_ddl,
)
from quereus_store.schema.objects import (
    CheckConstraint,
    CollationRank,
    ColumnSchema,
    ConflictAction,
    ContextVariable,
    Derivation,
    ForeignKey,
    KeyPart,
    Operation,
    PrimaryKey,
    ReferentialAction,
    TableSchema,
    UniqueConstraint,
)
from quereus_store.sql.parser import parse_expression, parse_statement
from quereus_store.types import INTEGER
from quereus_store.types.logical import BUILT_IN_TYPES
from tests.schema.support import catalog, index, table


def part_type(of, part):
    return INTEGER, True, "BINARY"


def read_back(*statements):
    """The table that a bundle describes."""
    built = build_table(parse_statement(statements[0]), schema_name="main")
    for statement in statements[1:]:
        built = add_index(built, build_index(parse_statement(statement), built, part_typer=part_type)).table
    return built


@pytest.mark.parametrize(
    ("sql", "persisted", "session"),
    [
        (
            "create table b (x text, y integer null)",
            'CREATE TABLE "main"."b" ("x" TEXT NOT NULL, "y" INTEGER NULL) USING memory',
            'CREATE TABLE "b" ("x" TEXT, "y" INTEGER NULL)',
        ),
        (
            "create table b (id integer primary key desc, n varchar(9) collate nocase default 'it''s')",
            'CREATE TABLE "main"."b" ("id" INTEGER NOT NULL PRIMARY KEY DESC,'
            """ "n" TEXT NOT NULL COLLATE NOCASE DEFAULT 'it''s') USING memory""",
            """CREATE TABLE "b" ("id" INTEGER PRIMARY KEY DESC, "n" TEXT COLLATE NOCASE DEFAULT 'it''s')""",
        ),
        (
            "create table b (a integer, g integer generated always as (a * 2) stored, c integer check (c > 0),"
            " primary key (a desc, c), check on update (c < 9), unique (c) on conflict replace,"
            " constraint u unique (c, a) with tags (k = null), foreign key (c) references p on delete cascade)"
            " using store(max = 5, fast = true) with tags (t = true, f = 1.5)",
            'CREATE TABLE "main"."b" ("a" INTEGER NOT NULL, "g" INTEGER NOT NULL GENERATED ALWAYS AS (a * 2)'
            ' STORED, "c" INTEGER NOT NULL, PRIMARY KEY ("a" DESC, "c"), constraint _check_c check on insert,'
            " update (c > 0), check on update (c < 9), unique (c) on conflict replace,"
            " constraint u unique (c, a) with tags (k = null),"
            " constraint _fk_b_c foreign key (c) references p on delete cascade on update restrict)"
            " USING store (max = 5, fast = 1) WITH TAGS (t = TRUE, f = 1.5)",
            None,
        ),
        (
            "create table b (a integer, primary key ()) with context (who text, why null)",
            'CREATE TABLE "main"."b" ("a" INTEGER NOT NULL, PRIMARY KEY ()) USING memory'
            ' WITH CONTEXT ("who" TEXT, "why" ANY NULL)',
            None,
        ),
    ],
)
def test_forms_of_a_table(sql, persisted, session):
    built = table(sql)
    assert table_ddl(built) == persisted
    assert session is None or table_ddl(built, SessionForm()) == session
    assert read_back(persisted) == built


def test_what_the_session_takes_for_granted_is_left_out():
    built = table("create table b (a integer, b integer null) using store")
    settings = TableSettings(nullable_by_default=True, default_module="store")
    assert table_ddl(built, SessionForm("temp", settings)) == (
        'CREATE TABLE "main"."b" ("a" INTEGER NOT NULL, "b" INTEGER)'
    )


def test_indexes_and_bundles():
    built = table(
        "create table b (a integer, s text collate nocase, constraint u unique (a)"
        ' with tags ("quereus.expose_implicit_index" = true))',
        "create index i on b (s desc, a) where a > 1 with tags (k = 'v')",
        "create unique index j on b ((a + 1))",
    )
    assert index_ddl(built.index("i"), built, SessionForm()) == (
        'CREATE INDEX "i" ON "b" ("s" COLLATE NOCASE DESC, "a" COLLATE BINARY) WHERE a > 1'
        " WITH TAGS (k = 'v')"
    )
    hidden = replace(built.index("u"), tags={"k": True})
    assert index_tags_ddl("main", hidden) == "alter index main.u set tags (k = true)"
    tagged = replace(built, indexes=(hidden, *built.indexes[1:]))
    bundle = table_bundle(tagged)
    assert [text.split()[0:3] for text in bundle] == [
        ["CREATE", "TABLE", '"main"."b"'],
        ["CREATE", "INDEX", '"i"'],
        ["CREATE", "UNIQUE", "INDEX"],
        ["alter", "index", "main.u"],
    ]
    assert read_back(*bundle[:3]) == built


def test_views_and_assertions():
    made = catalog(
        "create view v (a, b) as select 1, 'x' union all select 2, 'y' order by 1 with tags (k = true);"
        "create assertion a check (not exists (select 1 from t where x < 0));"
        "create assertion temp.b check (1 = 1)"
    )
    view = made.view("main", "v")
    text = view_ddl(view)
    assert text == (
        "create view main.v (a, b) as select 1, 'x' union all select 2, 'y' order by 1 with tags (k = true)"
    )
    assert build_view(parse_statement(text), "main") == view
    assert assertion_ddl(made.schema("main").assertions["a"]) == (
        "CREATE ASSERTION a CHECK (not exists (select 1 from t where x < 0))"
    )
    assert assertion_ddl(made.schema("temp").assertions["b"]) == 'CREATE ASSERTION "temp".b CHECK (1 = 1)'


def test_a_maintained_table_keeps_its_body():
    built = table(
        "create table m (x integer, primary key (x)) maintained (x) as select a from t with tags (k = 1)"
    )
    assert isinstance(built.derivation, Derivation)
    text = table_ddl(built, SessionForm())
    assert text == (
        'CREATE TABLE "main"."m" ("x" INTEGER NOT NULL PRIMARY KEY) USING memory'
        " maintained (x) as select a from t WITH TAGS (k = 1)"
    )
    assert read_back(text) == built


# --- any table --------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "B", "select", 'qu"ote', "two words", "ünï", "x1", "temp", "tags"])
TAGS = st.dictionaries(
    st.sampled_from(["k", "quereus.x", "other key"]),
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["v", "it's", ""]) | st.just(-1.5),
    max_size=2,
)
ACTIONS = st.none() | st.sampled_from([a for a in ConflictAction if a is not ConflictAction.ABORT])
OPERATIONS = st.frozensets(st.sampled_from(list(Operation)), min_size=1)


@st.composite
def columns(draw, name):
    logical_type = draw(st.sampled_from(BUILT_IN_TYPES))
    nullable = draw(st.booleans())
    collation, rank = "BINARY", CollationRank.DEFAULT
    if draw(st.booleans()):
        rank = CollationRank.DECLARED
        if logical_type.is_textual or logical_type.is_numeric:
            collation = draw(st.sampled_from(["NOCASE", "RTRIM", "BINARY"]))
    kind = draw(st.sampled_from(["plain", "default", "generated"]))
    return ColumnSchema(
        name,
        logical_type,
        nullable=nullable,
        collation=collation,
        collation_rank=rank,
        default=parse_expression("null or new.z = 'x' collate nocase") if kind == "default" else None,
        generated=parse_expression("1 + (2 - 3) * -4") if kind == "generated" else None,
        stored=kind == "generated" and draw(st.booleans()),
        not_null_conflict=None if nullable else draw(ACTIONS),
        tags=draw(TAGS),
    )


@st.composite
def primary_keys(draw, made):
    """A declared key of up to three columns, perhaps none, or the key of all columns."""
    if draw(st.booleans()):
        positions = st.lists(st.sampled_from(range(len(made))), unique=True, max_size=min(3, len(made)))
        parts = tuple(
            KeyPart(
                column,
                draw(st.booleans()),
                draw(st.sampled_from([made[column].collation, "NOCASE"])),
            )
            for column in draw(positions)
        )
        return PrimaryKey(parts, conflict=draw(ACTIONS))
    return PrimaryKey(
        tuple(KeyPart(column, False, made[column].collation) for column in range(len(made))),
        declared=False,
    )


@st.composite
def tables(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    made = tuple(draw(columns(name)) for name in names)
    column = st.sampled_from(range(len(made)))
    most = min(3, len(made))
    some = st.lists(column, unique=True, min_size=1, max_size=most).map(tuple)
    expression = parse_expression("(a or b) between 0 and 1")
    checks = [
        CheckConstraint(
            f"c{number}" if named else f"_check_{number}",
            expression,
            draw(OPERATIONS),
            named=named,
            positional=not named,
            conflict=draw(ACTIONS),
            tags=draw(TAGS),
        )
        for number, named in enumerate(draw(st.lists(st.booleans(), max_size=2)))
    ]
    keys = [
        ForeignKey(
            f"f{number}",
            local,
            draw(st.none() | st.just("temp")),
            draw(NAMES),
            draw(st.none() | st.just(tuple(f"p{place}" for place in local))),
            draw(st.sampled_from(list(ReferentialAction))),
            draw(st.sampled_from(list(ReferentialAction))),
            named=True,
            deferred=draw(st.booleans()),
            tags=draw(TAGS),
        )
        for number, local in enumerate(draw(st.lists(some, max_size=2)))
    ]
    uniques = [
        UniqueConstraint(
            f"u{number}", local, f"u{number}", named=True, conflict=draw(ACTIONS), tags=draw(TAGS)
        )
        for number, local in enumerate(draw(st.lists(some, max_size=2)))
    ]
    return TableSchema(
        "main",
        draw(NAMES),
        made,
        draw(primary_keys(made)),
        tuple(uniques),
        tuple(checks),
        tuple(keys),
        module=draw(st.sampled_from(["memory", "my mod"])),
        module_arguments=draw(
            st.dictionaries(st.sampled_from(["k", "a b", "0"]), st.integers(-5, 5), max_size=2)
        ),
        context=draw(st.sampled_from([(), (ContextVariable("who am i", INTEGER, None, True),)])),
        tags=draw(TAGS),
    )


@settings(max_examples=150, deadline=None)
@given(tables())
def test_any_table_reads_back_as_itself(built):
    text = table_ddl(built)
    again = read_back(text)
    # Hidden indexes come from the constraints alone.
    assert replace(again, indexes=()) == built
    assert [found.name for found in again.indexes] == [unique.name for unique in built.unique_constraints]
    assert table_ddl(again) == text
    assert read_back(table_ddl(again, SessionForm("temp", TableSettings(True)))) is not None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "s collate rtrim desc", "(a + 1) desc", "s"]), min_size=1, max_size=3),
    st.booleans(),
    TAGS,
)
def test_any_index_reads_back_as_itself(parts, unique, tags):
    built = table("create table t (a integer, s text collate nocase)")
    words = "unique " if unique else ""
    made = replace(
        index(built, f"create {words}index i on t ({', '.join(parts)}) where (a or s) = 1"), tags=tags
    )
    again = build_index(parse_statement(index_ddl(made, built)), built, part_typer=part_type)
    assert again == made
