"""The catalog survives: definitions come back equal, damaged entries are told apart, others notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from quereus_store.backends.memory import MemoryBackend
from quereus_store.catalog.bundles import CatalogServices, describe, rebuild
from quereus_store.catalog.entries import Entry, pack_entry, unpack_entry
from quereus_store.catalog.layout import EntryKind, entry_key
from quereus_store.errors import Error, StatusCode
from quereus_store.modules.contract import LoadedCatalog
from quereus_store.schema.builder import build_assertion, build_index, build_table, build_view
from quereus_store.schema.constraints import add_index
from quereus_store.schema.objects import Catalog, Schema, TableSchema
from quereus_store.sql import nodes, parse_script
from quereus_store.store import StoreModule
from quereus_store.store.check import check_store
from quereus_store.store.open import open_module
from quereus_store.types import INTEGER
from tests.store.support import Engine, reading, writing


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


def module_over(backend: MemoryBackend) -> StoreModule:
    module = open_module(backend)
    module.attach(Engine())
    return module


def schema_of(*statements: str) -> Schema:
    """Schema ``main`` as these statements make it."""
    schema = Schema("main")
    for statement in parse_script(";".join(statements)):
        match statement:
            case nodes.CreateTable():
                schema = schema.with_table(build_table(statement, schema_name="main"))
            case nodes.CreateView():
                schema = schema.with_view(build_view(statement, "main"))
            case nodes.CreateIndex():
                table = schema.tables[statement.table.name]
                typer = lambda table, expression: (INTEGER, True, "BINARY")  # noqa: E731
                schema = schema.with_table(add_index(table, build_index(statement, table, None, typer)).table)
            case nodes.CreateAssertion():
                assertion = build_assertion(statement, "main")
                schema = replace(schema, assertions={assertion.name: assertion})
    return schema


def save(module: StoreModule, schema: Schema, before: Catalog | None = None) -> Catalog:
    """Make the schema's tables and save the catalog; returns it with store ids."""
    with writing(module) as transaction:
        before = before or module.load_catalog(transaction).catalog
        for table in schema.tables.values():
            if table.module == "store" and not table.storage_id:
                schema = schema.with_table(module.create_table(transaction, table))
        after = before.with_schema(schema)
        module.save_catalog(transaction, before, after)
    return after


def load(module: StoreModule) -> LoadedCatalog:
    with reading(module) as transaction:
        return module.load_catalog(transaction)


def version(module: StoreModule) -> int:
    with reading(module) as transaction:
        return module.catalog_version(transaction)


STATEMENTS = (
    """create table crew (id integer primary key, name text collate nocase not null unique,
       note any null default 'two
       lines; and more', rank integer null check (rank > 0), boss integer null references crew (id)
       ) using store with tags (a = 1)""",
    """create table log (at datetime, what text, primary key (at desc, what))
       using store (collation = 'NOCASE')""",
    "create index by_rank on crew (rank desc, name collate binary) where rank is not null",
    "create unique index by_sum on crew (rank + id)",
    "create table heap (a any null, b json null) using store",
    "create view bosses as select distinct boss from crew where boss is not null",
    "create assertion few check ((select count(*) from crew) < 100)",
)


def test_definitions_come_back_equal(backend: MemoryBackend) -> None:
    saved = save(module_over(backend), schema_of(*STATEMENTS)).schemas["main"]
    loaded = load(module_over(backend))
    main = loaded.catalog.schemas["main"]
    assert loaded.problems == ()
    assert main.views == saved.views
    assert main.assertions == saved.assertions
    assert main.tables.keys() == saved.tables.keys()
    for name, table in main.tables.items():
        # The text of a type is kept in its canonical form.
        columns = tuple(replace(c, declared_type=None) for c in saved.tables[name].columns)
        assert replace(table, columns=columns) == replace(saved.tables[name], columns=columns)
        assert [c.name for c in table.columns] == [c.name for c in columns]
        assert [i.storage_id for i in table.indexes] == [i.storage_id for i in saved.tables[name].indexes]
        assert describe(table) == describe(saved.tables[name])


def test_reopening_changes_nothing(backend: MemoryBackend) -> None:
    first = module_over(backend)
    save(first, schema_of(*STATEMENTS))
    with backend.read() as snapshot:
        before = list(snapshot.scan(b"\0", None))
    second = module_over(backend)
    catalog = load(second).catalog
    with writing(second) as transaction:
        second.save_catalog(transaction, Catalog({"main": Schema("main")}), catalog)
    with backend.read() as snapshot:
        assert list(snapshot.scan(b"\0", None)) == before


def test_only_what_changed_is_written_and_parsed_again(backend: MemoryBackend) -> None:
    module, other = module_over(backend), module_over(backend)
    first = save(module, schema_of(*STATEMENTS))
    seen = load(other).catalog
    assert version(module) == version(other) == 1
    main = first.schemas["main"]
    renamed = replace(main.tables["heap"], name="pile")
    second = save(module, main.without_table("heap").with_table(renamed), first)
    assert version(other) == 2
    now = load(other).catalog
    assert now.table("main", "heap") is None
    pile = now.table("main", "pile")
    assert pile is not None
    assert pile.storage_id == renamed.storage_id
    assert now.table("main", "crew") is seen.table("main", "crew")
    assert load(module).catalog.table("main", "pile") is second.table("main", "pile")


def test_dropped_objects_are_gone(backend: MemoryBackend) -> None:
    module = module_over(backend)
    first = save(module, schema_of(*STATEMENTS))
    with writing(module) as transaction:
        for table in first.schemas["main"].tables.values():
            module.drop_table(transaction, table)
        module.save_catalog(transaction, first, first.with_schema(Schema("main")))
    assert load(module_over(backend)).catalog.schemas["main"] == Schema("main")
    with reading(module) as transaction:
        assert transaction.kv.count(b"\1", None) == 0


def test_a_rolled_back_schema_change_is_not_seen(backend: MemoryBackend) -> None:
    module = module_over(backend)
    first = save(module, schema_of(*STATEMENTS))
    transaction = module.begin_write(1.0)
    mark = transaction.savepoint()
    module.save_catalog(transaction, first, first.with_schema(Schema("main")))
    assert module.catalog_version(transaction) == 2
    assert load(module).catalog.table("main", "crew") is not None
    transaction.rollback_to(mark)
    assert module.catalog_version(transaction) == 1
    assert module.load_catalog(transaction).catalog.table("main", "crew") is not None
    transaction.rollback()
    assert version(module) == 1


def test_what_is_kept(backend: MemoryBackend) -> None:
    """Tables of other modules and temporary things are not; maintained tables are, wherever they live."""
    schema = schema_of(
        "create table volatile (id integer primary key) using memory",
        "create table doubled (n integer primary key) using memory maintained as select 2 as n",
    )
    catalog = Catalog({"main": schema, "temp": replace(schema_of(STATEMENTS[0]), name="temp")})
    module = module_over(backend)
    with writing(module) as transaction:
        module.save_catalog(transaction, Catalog({}), catalog)
    loaded = load(module_over(backend)).catalog
    assert loaded.schemas.keys() == {"main"}
    assert list(loaded.schemas["main"].tables) == ["doubled"]
    assert loaded.schemas["main"].tables["doubled"].derivation == schema.tables["doubled"].derivation


def test_objects_of_other_schemas(backend: MemoryBackend) -> None:
    module = module_over(backend)
    view = build_view(_one("create view v as select 1 as one"), "Side")
    with writing(module) as transaction:
        side = Catalog({"main": Schema("main"), "side": Schema("Side").with_view(view)})
        module.save_catalog(transaction, Catalog({}), side)
    assert load(module_over(backend)).catalog.view("side", "V") == view


def _one(text: str) -> Any:
    (statement,) = parse_script(text)
    return statement


# --- damage -----------------------------------------------------------------------------------------------


@contextmanager
def damaged(backend: MemoryBackend, key: bytes) -> Iterator[Any]:
    """The value under a key, to be replaced by what the block assigns to ``.value``."""

    class Box:
        value: bytes

    with backend.write(1.0) as transaction:
        box = Box()
        found = transaction.get(key)
        assert found is not None
        box.value = found
        yield box
        transaction.put(key, box.value)
        transaction.commit()


def test_a_damaged_entry_is_named_and_the_others_live(backend: MemoryBackend) -> None:
    save(module_over(backend), schema_of(*STATEMENTS))
    with damaged(backend, entry_key(EntryKind.TABLE, "main", "log")) as entry:
        entry.value = entry.value.replace(b"NOCASE", b"NOCASF")
    module = module_over(backend)
    loaded = load(module)
    assert loaded.catalog.schemas["main"].tables.keys() == {"crew", "heap"}
    (problem,) = loaded.problems
    assert problem.ddl == "main.log"
    assert isinstance(problem.error, Error)
    assert problem.error.code is StatusCode.CORRUPT
    assert str(problem.error) == "the catalog entry of main.log is corrupt: its checksum is wrong"
    with reading(module) as transaction:
        assert [finding.place for finding in check_store(module, transaction)] == ["catalog"]


def test_an_entry_that_cannot_be_built_is_reported_with_its_text(backend: MemoryBackend) -> None:
    save(module_over(backend), schema_of(*STATEMENTS))
    key = entry_key(EntryKind.TABLE, "main", "log")
    with damaged(backend, key) as entry:
        kept = unpack_entry(entry.value, "main.log")
        entry.value = pack_entry(replace(kept, ddl=kept.ddl.replace("COLLATE NOCASE", "COLLATE rev")))
    (problem,) = load(module_over(backend)).problems
    assert problem.ddl.startswith('CREATE TABLE "main"."log"')
    assert str(problem.error).startswith("Unknown collation 'rev' for type 'TEXT' on column 'what'")


@pytest.mark.parametrize(
    ("kind", "ddl", "message"),
    [
        (EntryKind.TABLE, "create table t (", "a definition in the catalog cannot be read"),
        (EntryKind.TABLE, "create view t as select 1", "a definition in the catalog is not that of a table"),
        (EntryKind.VIEW, "", "a definition in the catalog is not that of a view"),
        (
            EntryKind.TABLE,
            "create table t (a integer primary key) using store; drop table t",
            "the bundle of table main.t is damaged",
        ),
        (
            EntryKind.TABLE,
            "create table t (a integer primary key, b integer unique) using store",
            "the catalog does not say where index '_uc_b' of main.t is",
        ),
    ],
)
def test_entries_that_contradict_themselves(kind: EntryKind, ddl: str, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        rebuild(kind, Entry(ddl, 16), "main", CatalogServices.of(Engine()))
    assert caught.value.code is StatusCode.CORRUPT


def test_bytes_that_are_no_entry() -> None:
    good = pack_entry(Entry("create view v as select 1"))
    for value in (b"", good[:-1], good[:3], b"\0" + good):
        with pytest.raises(Error, match="the catalog entry of v is corrupt"):
            unpack_entry(value, "v")


def test_a_key_that_names_nothing(backend: MemoryBackend) -> None:
    save(module_over(backend), schema_of(*STATEMENTS))
    with backend.write(1.0) as transaction:
        transaction.put(b"\1?", b"")
        transaction.commit()
    loaded = load(module_over(backend))
    assert len(loaded.catalog.schemas["main"].tables) == 3
    assert "names no object" in str(loaded.problems[0].error)


def test_text_that_cannot_be_stored_is_refused(backend: MemoryBackend) -> None:
    module = module_over(backend)
    view = build_view(_one("create view v as select 1 as one"), "main")
    literal = replace(view, tags={"note": "\ud800"})
    before = load(module).catalog
    transaction = module.begin_write(1.0)
    with pytest.raises(Error, match="cannot store persisted schema text containing an unpaired surrogate"):
        module.save_catalog(transaction, before, before.with_schema(Schema("main").with_view(literal)))
    transaction.rollback()


# --- statistics and markers -------------------------------------------------------------------------------


def test_statistics_follow_the_rows(backend: MemoryBackend) -> None:
    module = module_over(backend)
    catalog = save(module, schema_of(*STATEMENTS))
    crew = _table(catalog, "crew")
    record = {"rowCount": 7, "columnStats": {"id": {"minValue": -(2**80), "maxValue": 3.0, "seen": b"\0"}}}
    with writing(module) as transaction:
        module.save_statistics(transaction, crew, record)
    assert repr(module.statistics(replace(crew, name="staff"))) == repr(record)
    assert module.statistics(_table(catalog, "log")) is None
    with writing(module) as transaction:
        module.save_statistics(transaction, crew, None)
    assert module.statistics(crew) is None


def _table(catalog: Catalog, name: str) -> TableSchema:
    found = catalog.table("main", name)
    assert found is not None
    return found


def test_markers(backend: MemoryBackend) -> None:
    module = module_over(backend)
    with writing(module) as transaction:
        module.write_marker(transaction, "stale_mvs", b"[]")
    with writing(module_over(backend)) as transaction:
        assert module.read_marker(transaction, "stale_mvs") == b"[]"
        module.write_marker(transaction, "stale_mvs", None)
    with reading(module) as transaction:
        assert module.read_marker(transaction, "stale_mvs") is None
