"""Random schema changes: memory tables and a store agree, and a store's file says what its catalog says.

Each example is a list of statements on two tables with rows. After every statement both databases must
have answered alike (the same error or none), hold the same rows and the same definitions; at
the end the store's indexes must fit its rows, and reading its catalog anew must give equal objects.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from quereus_store.catalog.storage import StoredCatalog
from quereus_store.errors import Error
from quereus_store.schema.ddl import table_bundle
from quereus_store.schema.objects import Catalog, TableSchema
from quereus_store.store.check import check_store
from quereus_store.store.module import StoreModule
from tests.execute.database import Database

COLUMNS = ("id", "a", "b", "c", "d")
column = st.sampled_from(COLUMNS)
name = st.sampled_from(("k", "m", "one", "two"))
kind = st.sampled_from(("integer", "text", "real", "any"))
collation = st.sampled_from(("nocase", "binary", "rtrim"))
clause = st.sampled_from(
    (
        "null",
        "null unique",
        "default 7",
        "default 'x' collate nocase",
        "null default (new.a)",
        "generated always as (a || '!') stored",
        "null check (typeof(a) <> 'null')",
        "null references u (id)",
    )
)
columns = st.lists(column, min_size=1, max_size=2, unique=True).map(", ".join)

statement = st.one_of(
    st.builds("alter table t add column {} {} {}".format, column, kind, clause),
    st.builds("alter table t drop column {}".format, column),
    st.builds("alter table t rename column {} to {}".format, column, column),
    st.builds("alter table t alter column {} set data type {}".format, column, kind),
    st.builds("alter table t alter column {} set collate {}".format, column, collation),
    st.builds("alter table t alter column {} set not null".format, column),
    st.builds("alter table t alter column {} drop not null".format, column),
    st.builds("alter table t alter column {} set default 3".format, column),
    st.builds("alter table t alter primary key ({})".format, columns),
    st.builds("alter table t add constraint {} unique ({})".format, name, columns),
    st.builds("alter table t add constraint {} check ({} is not null)".format, name, column),
    st.builds("alter table t add unique ({})".format, columns),
    st.builds("alter table t rename constraint {} to {}".format, name, name),
    st.builds("alter table t drop constraint {}".format, name),
    st.builds("create index {} on t ({})".format, name, columns),
    st.builds("create unique index {} on t ({})".format, name, columns),
    st.builds("create index {} on t (b) where {} > 1".format, name, column),
    st.builds("drop index {}".format, name),
    st.builds("insert into t (id, a) values ({}, {})".format, st.integers(1, 9), st.sampled_from("123")),
    st.builds("update t set a = {} where id = {}".format, st.sampled_from("123"), st.integers(1, 5)),
    st.builds("delete from t where id = {}".format, st.integers(1, 5)),
    st.sampled_from(("begin", "commit", "rollback")),
)

START = """
    create table u (id integer primary key, a text null);
    create table t (id integer primary key, a text, b integer null, unique (a));
    insert into u values (1, 'x'), (2, null);
    insert into t values (1, 'x', 5), (2, 'X ', null), (3, '07', 1);
"""


def answer(db: Database, sql: str) -> str:
    """What a statement came to: nothing, or its error."""
    try:
        db.session.execute(sql).all_rows()
    except Error as error:
        # A row that moves onto another's key is told of in each module's own words (dml, errors).
        message = error.message.replace("failed on new PK for t.", "failed: t PK.")
        return f"{error.code.name}: {message}"
    return ""


def definitions(db: Database) -> list[tuple[str, ...]]:
    """The tables' definitions, without saying where they are stored."""
    transaction = db.session.transaction
    catalog: Catalog = transaction.catalog if transaction else db.engine.pin()[0]
    tables = catalog.schemas["main"].tables.values()
    return [table_bundle(replace(table, module="memory", module_arguments={})) for table in tables]


def tables_of(catalog: Catalog) -> dict[str, TableSchema]:
    return dict(catalog.schemas["main"].tables)


@settings(max_examples=40, deadline=None)
@given(st.lists(statement, min_size=1, max_size=8))
@example(
    [
        "alter table t alter primary key (a)",
        "insert into t (id, a) values (1, 1)",
        "update t set a = 1 where id = 1",
    ]
)
def test_modules_agree_on_schema_changes(statements: list[str]) -> None:
    memory, store = Database("memory"), Database("store")
    for db in (memory, store):
        db.run(START)
    for sql in statements:
        assert answer(memory, sql) == answer(store, sql), sql
        assert sorted(map(repr, memory.rows("select * from t"))) == sorted(
            map(repr, store.rows("select * from t"))
        ), sql
        assert definitions(memory) == definitions(store), sql
    for db in (memory, store):
        db.session.commit()
    read_back(store)


def read_back(store: Database) -> None:
    """The store's indexes fit its rows, and its catalog reads back as it is."""
    module = store.engine.modules["store"]
    assert isinstance(module, StoreModule)
    snapshot = module.begin_read()
    catalog = store.engine.catalog_for(snapshot)
    assert check_store(module, snapshot) == []
    afresh = StoredCatalog("store", store.engine).load(snapshot.kv, 0)
    assert tables_of(afresh.catalog) == tables_of(catalog)
    snapshot.rollback()
