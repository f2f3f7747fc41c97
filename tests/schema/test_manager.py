"""Finding objects in a catalog, and what a name may and may not be."""

# ruff: noqa: E501 - messages are quoted whole

import pytest

from quereus_store.errors import Error, StatusCode
from quereus_store.schema import changes, dropping, manager, naming
from quereus_store.schema.objects import TableSchema, ViewSchema
from quereus_store.schema.target import Target
from tests.schema.support import catalog, table

CATALOG = manager.add_schema(
    catalog(
        "create table crew (id integer primary key, ship integer references ship);"
        "create table temp.crew (x integer);"
        "create table temp.only (x integer);"
        "create view v as select 1;"
        "create table mv (x integer) maintained as select 1 as x;"
        "create index by_ship on crew (ship);"
        "create assertion ok check (1 = 1);"
        "create table ship (id integer primary key, code text, constraint uq unique (code))"
    ),
    "extra",
)
CATALOG = manager.put_table(CATALOG, table("create table far (a integer)", schema="extra"))
PATH = ("main", "temp")


def message(function, *arguments, **options):
    with pytest.raises(Error) as caught:
        function(CATALOG, *arguments, **options)
    return caught.value.code, caught.value.message


def refusal(function, name, *arguments, schema="main", tolerant=False):
    with pytest.raises(Error) as caught:
        function(Target(CATALOG, schema, name, tolerant), *arguments)
    return caught.value.code, caught.value.message


def test_a_name_is_looked_for_along_the_path():
    assert manager.resolve_relation(CATALOG, PATH, None, "CREW").schema == "main"
    assert manager.resolve_relation(CATALOG, ("temp", "main"), None, "crew").schema == "temp"
    assert manager.resolve_relation(CATALOG, PATH, "Temp", "crew").schema == "temp"
    assert isinstance(manager.resolve_relation(CATALOG, PATH, None, "v"), ViewSchema)


def test_a_name_that_is_not_there():
    resolve = manager.resolve_relation
    assert message(resolve, PATH, "main", "x") == (StatusCode.NOTFOUND, "Table not found: main.x")
    assert message(resolve, PATH, None, "x") == (
        StatusCode.NOTFOUND,
        "Table 'x' not found in schema path: main, temp",
    )
    assert message(resolve, PATH, None, "far") == (
        StatusCode.NOTFOUND,
        "Table 'far' not found in schema path: main, temp\n  Did you mean: extra.far?\n"
        "  Or add 'extra' to your WITH SCHEMA clause",
    )
    assert message(manager.resolve_table, ("main",), None, "v") == (
        StatusCode.NOTFOUND,
        "Table 'v' not found in schema path: main",
    )


def test_names_of_new_tables():
    check = naming.check_table_name
    assert check(Target(CATALOG, "main", "only"))
    assert not check(Target(CATALOG, "main", "Crew", tolerant=True))
    assert not check(Target(CATALOG, "main", "mv", tolerant=True))
    assert refusal(check, "crew") == (StatusCode.CONSTRAINT, "Table main.crew already exists")
    assert refusal(check, "v") == (StatusCode.CONSTRAINT, "View main.v already exists")
    assert refusal(check, "v", tolerant=True) == (
        StatusCode.CONSTRAINT,
        "Cannot CREATE TABLE main.v: a VIEW with the same name already exists.",
    )
    assert refusal(check, "t", schema="no") == (StatusCode.INTERNAL, "Internal error: Schema 'no' not found.")


def test_names_of_new_views_and_assertions():
    check = naming.check_view_name
    assert not check(Target(CATALOG, "main", "v", tolerant=True))
    assert refusal(check, "v") == (StatusCode.ERROR, "View 'main.v' already exists")
    taken = "Schema 'main': Cannot add view 'crew', a table with the same name already exists."
    assert refusal(check, "crew", tolerant=True) == (StatusCode.ERROR, taken)
    check = naming.check_materialized_view_name
    assert not check(Target(CATALOG, "main", "mv", tolerant=True))
    for name in ("mv", "v", "crew"):
        text = f"Cannot create materialized view 'main.{name}': a table or view with the same name already exists"
        assert refusal(check, name) == (StatusCode.CONSTRAINT, text)
    check = naming.check_assertion_name
    assert not check(Target(CATALOG, "main", "OK", tolerant=True))
    assert refusal(check, "ok") == (StatusCode.ERROR, "Assertion ok already exists")
    assert check(Target(CATALOG, "temp", "ok"))


def test_names_of_new_indexes():
    ship, crew = CATALOG.table("main", "ship"), CATALOG.table("main", "crew")
    check = naming.check_index_name
    assert check(Target(CATALOG, "main", "fresh"), crew)
    assert check(Target(CATALOG, "main", "uq"), crew), "a hidden index takes its name on its own table only"
    assert refusal(check, "uq", ship) == (StatusCode.CONSTRAINT, "Index uq already exists on table ship")
    assert not check(Target(CATALOG, "main", "By_Ship", tolerant=True), crew)
    elsewhere = "Index 'by_ship' already exists in schema 'main' on table 'crew'"
    assert refusal(check, "by_ship", ship, tolerant=True) == (StatusCode.CONSTRAINT, elsewhere)


@pytest.mark.parametrize(
    ("function", "name", "text"),
    [
        (dropping.table_to_drop, "v", "Table v not found in schema main"),
        (dropping.view_to_drop, "crew", "View 'main.crew' does not exist"),
        (dropping.view_to_drop, "mv", "'mv' is a materialized view — use DROP MATERIALIZED VIEW"),
        (
            dropping.materialized_view_to_drop,
            "v",
            "'v' is a view, not a materialized view — use DROP VIEW",
        ),
        (
            dropping.materialized_view_to_drop,
            "crew",
            "'crew' is a table, not a materialized view — use DROP TABLE",
        ),
        (dropping.index_to_drop, "uq", "no such index: uq"),
        (dropping.assertion_to_drop, "no", "Assertion no not found in schema main"),
    ],
)
def test_drops_of_what_is_not_there(function, name, text):
    assert refusal(function, name)[1] == text
    assert refusal(function, name, schema="nowhere")[1] == "Schema not found: nowhere"
    if function is dropping.view_to_drop and name == "mv":
        assert refusal(function, name, tolerant=True)[1] == text
    else:
        assert function(Target(CATALOG, "main", name, tolerant=True)) is None


def test_drop_table_means_materialized_views_too():
    assert isinstance(dropping.table_to_drop(Target(CATALOG, "main", "mv")), TableSchema)


def test_the_parent_of_a_foreign_key():
    crew = CATALOG.table("main", "crew")
    (key,) = crew.foreign_keys
    parent = manager.parent_of(CATALOG, crew, key)
    assert parent.name == "ship"
    assert manager.parent_key(parent, key) == (0,)


def test_a_catalog_is_a_value():
    crew = CATALOG.table("main", "crew")
    after = manager.rename_table(CATALOG, crew, "sailors")
    after = manager.remove_view(after, after.view("main", "v"))
    after = manager.remove_assertion(after, after.schema("main").assertions["ok"])
    assert CATALOG.table("main", "crew") is crew
    assert after.version > CATALOG.version
    events = [(change.type, change.object.name) for change in changes.changes(CATALOG, after)]
    assert events == [
        ("table_removed", "crew"),
        ("view_removed", "v"),
        ("assertion_removed", "ok"),
        ("table_added", "sailors"),
    ]
    assert changes.changes(CATALOG, CATALOG) == []


def test_schemas_come_and_go():
    assert "extra" not in manager.remove_schema(CATALOG, "Extra").schemas
    for name in ("main", "temp", "nowhere"):
        message(manager.remove_schema, name)
    assert message(manager.add_schema, "MAIN")[1] == "Schema 'MAIN' already exists"


def test_both_ends_of_a_foreign_key_compare_text_alike():
    made = catalog("create table p (k text collate rtrim primary key, d text)")
    child = table("create table c (r text collate nocase references p(k))")
    with pytest.raises(Error) as caught:
        manager.check_foreign_key_collations(made, child)
    assert caught.value.message == (
        "FOREIGN KEY '_fk_c_r' on 'c': child column 'c.r' (collation NOCASE) and parent column 'p.k' (collation RTRIM)"
        " declare conflicting collations; declare a matching COLLATE on both sides."
    )
    for harmless in (
        "create table c (r text references p)",
        "create table c (r text collate nocase references p(d))",
        "create table c (r text collate nocase references elsewhere)",
        "create table c (r text collate nocase primary key references c)",
    ):
        manager.check_foreign_key_collations(made, table(harmless))
