"""``con.database``: modules, functions, collations, options and the schema manager."""

from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.errors import Error, InterfaceError, ProgrammingError, StatusCode
from quereus_store.modules.memory import MemoryModule


def test_what_the_database_knows_can_be_looked_up(con: Connection) -> None:
    database = con.database
    assert "memory" in database.modules
    assert database.functions.find("upper", 1) is not None
    assert {"BINARY", "NOCASE", "RTRIM"} <= set(database.collations.names())
    assert database.options["foreign_keys"] is True
    with pytest.raises(TypeError):
        database.modules["x"] = MemoryModule()  # type: ignore[index]


def test_functions_and_collations_can_be_taken_back(con: Connection) -> None:
    database = con.database
    database.create_function("twice", 1, lambda value: value * 2)
    assert con.execute("select twice(4)").fetchone() == (8,)
    assert database.unregister_function("TWICE", 1)
    assert not database.unregister_function("twice", 1)
    with pytest.raises(Error, match="twice"):
        con.execute("select twice(5)")
    database.create_collation("backwards", lambda a, b: (a < b) - (a > b))
    assert database.unregister_collation("Backwards")
    assert not database.unregister_collation("binary")


def test_options_are_what_new_connections_start_with(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "db") as first:
        first.database.options["column_nullability_default"] = "nullable"
        first.execute("create table strict_table (id integer primary key, v text)")
        with quereus_store.connect(tmp_path / "db") as second:
            second.execute("create table lax_table (id integer primary key, v text)")
            second.execute("insert into lax_table (id) values (1)")
        with pytest.raises(Error, match="NOT NULL"):
            first.execute("insert into strict_table (id) values (1)")
        del first.database.options["default_column_nullability"]
        assert first.database.options["default_column_nullability"] == "not_null"


def test_options_are_checked(con: Connection) -> None:
    with pytest.raises(ProgrammingError, match="Unknown option: colour"):
        con.database.options["colour"] = "red"
    with pytest.raises(InterfaceError, match="Invalid boolean value"):
        con.database.options["foreign_keys"] = "perhaps"
    assert con.database.options["foreign_keys"] is True


def test_options_take_lists_and_dictionaries(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "db") as first:
        options = first.database.options
        options["search_path"] = ["temp", "main"]
        assert options["schema_path"] == ("temp", "main")
        options["default_vtab_args"] = {"a": 1}
        with quereus_store.connect(tmp_path / "db") as second:
            assert second.execute("pragma schema_path").fetchone() == ("schema_path", "temp,main")
            assert second.execute("pragma default_vtab_args").fetchone() == ("default_vtab_args", '{"a":1}')


def test_the_schema_manager_looks_up(con: Connection) -> None:
    manager = con.database.schema_manager
    con.execute("create view v as select * from tank")
    con.execute("create materialized view m as select id from tank")
    assert manager.get_main_schema().name == "main"
    assert manager.get_schema("nowhere") is None
    with pytest.raises(Error, match="Schema 'nowhere' not found"):
        manager.get_schema_or_fail("nowhere")
    table = manager.find_table("TANK")
    assert table is not None
    assert (table.name, manager.get_table("main", "tank")) == ("tank", table)
    assert manager.get_maintained_table("main", "tank") is None
    assert [found.name for found in manager.get_all_maintained_tables()] == ["m"]
    assert manager.get_view("main", "v") is manager.get_schema_item("main", "V")
    assert manager.find_schemas_containing_table("tank") == ["main"]


def test_the_schema_manager_changes(con: Connection) -> None:
    manager = con.database.schema_manager
    manager.add_schema("Yard")
    with pytest.raises(Error, match="already exists"):
        manager.add_schema("yard")
    assert manager.create_table("create table yard.pipe (id integer primary key)").schema == "yard"
    with pytest.raises(Error, match="still has tables"):
        manager.remove_schema("yard")
    assert manager.drop_table("yard", "pipe")
    assert not manager.drop_table("yard", "pipe", if_exists=True)
    manager.remove_schema("yard")
    assert manager.get_schema("yard") is None
    manager.create_index("create index tank_name on tank (name)")
    with pytest.raises(InterfaceError, match="takes a CREATE INDEX"):
        manager.create_index("drop table tank")


def test_the_schema_manager_sets_tags(con: Connection) -> None:
    manager = con.database.schema_manager
    con.execute("create index tank_name on tank (name)")
    con.execute("create view v as select * from tank")
    manager.set_table_tags("tank", {"purpose": "water", "level": 3})
    manager.set_column_tags("tank", "name", {"label": "Name"})
    manager.set_index_tags("tank_name", {"why": "search"})
    manager.set_view_tags("v", {"shown": True})
    assert dict(manager.get_table_tags("tank") or {}) == {"purpose": "water", "level": 3}
    table = manager.find_table("tank")
    assert table is not None
    assert dict(table.columns[1].tags) == {"label": "Name"}
    manager.set_table_tags("tank", {})
    assert dict(manager.get_table_tags("tank") or {}) == {}
    for unknown in (
        lambda: manager.set_table_tags("x", {}),
        lambda: manager.set_column_tags("tank", "x", {}),
        lambda: manager.set_constraint_tags("tank", "x", {}),
        lambda: manager.set_index_tags("x", {}),
        lambda: manager.set_materialized_view_tags("x", {}),
    ):
        with pytest.raises(Error) as caught:
            unknown()
        assert caught.value.code is StatusCode.NOTFOUND


def test_modules_are_registered_and_announced(con: Connection) -> None:
    told: list[str] = []
    con.database.schema_manager.change_notifier.add_listener(lambda change: told.append(change.type))
    con.database.register_module(MemoryModule("second"))
    con.execute("create table elsewhere (id integer primary key) using second")
    assert told == ["module_added", "table_added"]
    with pytest.raises(InterfaceError):
        con.database.register_module(MemoryModule("second"))
