"""``database.schema_manager``: the catalog for programs, to be looked up and changed.

Every look-up reads the committed catalog of that moment; what it gives are immutable values.  Changes are
statements of their own, which commit or fail like any other and are told of as events.

Chapter: seed schema, "SchemaManager API".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.notification import CatalogChange
from quereus_store.execute.session import Session
from quereus_store.functions.registry import Function
from quereus_store.schema.manager import (
    DEFAULT_PATH,
    MAIN,
    add_schema,
    find_in_schema,
    find_relation,
    remove_schema,
    tables_of,
)
from quereus_store.schema.objects import Catalog, Schema, TableSchema, ViewSchema, fold
from quereus_store.sql import nodes, parse_statement

if TYPE_CHECKING:
    from quereus_store.api.database import Database


class ChangeNotifier:
    """Tells listeners of every object of the catalog that a commit left different."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_listener(self, listener: Callable[[CatalogChange], Any]) -> Callable[[], None]:
        """Call a function for each change from now on; what is returned ends that."""
        return self._database.events.on_catalog_change(listener)


class SchemaManager:
    """The schemas of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def catalog(self) -> Catalog:
        """All schemas, as a snapshot."""
        return self._database.catalog

    @property
    def change_notifier(self) -> ChangeNotifier:
        """Where to listen to changes of the catalog."""
        return ChangeNotifier(self._database)

    # -- schemas -----------------------------------------------------------------------

    def get_schema(self, name: str) -> Schema | None:
        """A schema by name, any case."""
        return self.catalog.schema(name)

    def get_schema_or_fail(self, name: str) -> Schema:
        """A schema by name; raises ERROR when there is none."""
        found = self.catalog.schema(name)
        if found is None:
            raise sql_error(StatusCode.ERROR, f"Schema '{name}' not found")
        return found

    def get_main_schema(self) -> Schema:
        """The schema ``main``."""
        return self.get_schema_or_fail("main")

    def get_temp_schema(self) -> Schema:
        """The schema ``temp``."""
        return self.get_schema_or_fail("temp")

    def add_schema(self, name: str) -> Schema:
        """Create an empty schema; raises ERROR when the name is taken."""
        self._change(lambda catalog: add_schema(catalog, fold(name)))
        return self.get_schema_or_fail(name)

    def remove_schema(self, name: str) -> None:
        """Drop a schema that has no tables; raises ERROR for ``main``, ``temp``, unknown and filled ones."""

        def removed(catalog: Catalog) -> Catalog:
            schema = catalog.schema(name)
            if schema is not None and schema.tables:
                raise sql_error(StatusCode.ERROR, f"Schema '{name}' still has tables")
            return remove_schema(catalog, name)

        self._change(removed)

    # -- look-ups ----------------------------------------------------------------------

    def find_table(
        self, name: str, schema: str | None = None, schema_path: Iterable[str] | None = None
    ) -> TableSchema | None:
        """A table of one schema, or the first that a path (main, then temp) leads to."""
        path = DEFAULT_PATH if schema_path is None else tuple(schema_path)
        found = find_relation(self.catalog, path, schema, name)
        return found if isinstance(found, TableSchema) else None

    def get_table(self, schema: str, name: str) -> TableSchema | None:
        """A table, maintained or not."""
        return self.catalog.table(schema, name)

    def get_maintained_table(self, schema: str, name: str) -> TableSchema | None:
        """A table that is kept equal to a query; None for plain tables too."""
        found = self.catalog.table(schema, name)
        return found if found is not None and found.derivation is not None else None

    def get_all_maintained_tables(self) -> list[TableSchema]:
        """Every maintained table of every schema."""
        return [table for table in tables_of(self.catalog) if table.derivation is not None]

    def get_view(self, schema: str, name: str) -> ViewSchema | None:
        """A plain view."""
        return self.catalog.view(schema, name)

    def get_schema_item(self, schema: str, name: str) -> TableSchema | ViewSchema | None:
        """A table or a view."""
        return find_in_schema(self.catalog, schema, name)

    def find_schemas_containing_table(self, name: str) -> list[str]:
        """The names of the schemas that have a table of that name."""
        return [
            schema.name
            for schema in self.catalog.schemas.values()
            if schema.tables.get(fold(name)) is not None
        ]

    def find_function(self, name: str, arguments: int) -> Function | None:
        """The function that a call with so many arguments means."""
        return self._database.functions.find(name, arguments)

    # -- statements ---------------------------------------------------------------------

    def create_table(self, sql: str) -> TableSchema:
        """Run a CREATE TABLE; the table."""
        statement = parse_statement(sql)
        if not isinstance(statement, nodes.CreateTable):
            raise sql_error(StatusCode.MISUSE, "create_table takes a CREATE TABLE statement")
        self._run(statement)
        found = self.get_table(statement.name.schema or MAIN, statement.name.name)
        assert found is not None
        return found

    def create_index(self, sql: str) -> None:
        """Run a CREATE INDEX."""
        statement = parse_statement(sql)
        if not isinstance(statement, nodes.CreateIndex):
            raise sql_error(StatusCode.MISUSE, "create_index takes a CREATE INDEX statement")
        self._run(statement)

    def drop_table(self, schema: str, name: str, if_exists: bool = False) -> bool:
        """Drop a table; whether there was one.  Raises NOTFOUND without ``if_exists``."""
        existed = self.get_table(schema, name) is not None
        self._run(nodes.DropObject(nodes.ObjectKind.TABLE, nodes.ObjectName(name, schema), if_exists))
        return existed

    # -- tags ------------------------------------------------------------------------------

    def get_table_tags(self, name: str, schema: str = MAIN) -> Mapping[str, Any] | None:
        """The tags of a table; None without such a table."""
        found = self.catalog.table(schema, name)
        return None if found is None else found.tags

    def set_table_tags(self, name: str, tags: Mapping[str, Any], schema: str = MAIN) -> None:
        """Replace the tags of a table."""
        self._run(self._of_table(name, schema, nodes.ChangeTags(_set(tags))))

    def set_column_tags(self, name: str, column: str, tags: Mapping[str, Any], schema: str = MAIN) -> None:
        """Replace the tags of a column; raises NOTFOUND for an unknown one."""
        self._run(self._of_table(name, schema, nodes.ChangeTags(_set(tags), column=column)))

    def set_constraint_tags(
        self, name: str, constraint: str, tags: Mapping[str, Any], schema: str = MAIN
    ) -> None:
        """Replace the tags of a named constraint; raises NOTFOUND for an unknown one."""
        self._run(self._of_table(name, schema, nodes.ChangeTags(_set(tags), constraint=constraint)))

    def set_view_tags(self, name: str, tags: Mapping[str, Any], schema: str = MAIN) -> None:
        """Replace the tags of a view; raises NOTFOUND for an unknown one."""
        self._set_object_tags(nodes.ObjectKind.VIEW, name, tags, schema)

    def set_materialized_view_tags(self, name: str, tags: Mapping[str, Any], schema: str = MAIN) -> None:
        """Replace the tags of a maintained table; raises NOTFOUND for an unknown one."""
        self._set_object_tags(nodes.ObjectKind.MATERIALIZED_VIEW, name, tags, schema)

    def set_index_tags(self, name: str, tags: Mapping[str, Any], schema: str = MAIN) -> None:
        """Replace the tags of an index; raises NOTFOUND for an unknown or a hidden one."""
        self._set_object_tags(nodes.ObjectKind.INDEX, name, tags, schema)

    def _set_object_tags(
        self, kind: nodes.ObjectKind, name: str, tags: Mapping[str, Any], schema: str
    ) -> None:
        self._run(nodes.AlterObjectTags(kind, nodes.ObjectName(name, schema), _set(tags)))

    def _of_table(self, name: str, schema: str, action: nodes.AlterAction) -> nodes.AlterTable:
        if self.catalog.table(schema, name) is None:
            raise sql_error(StatusCode.NOTFOUND, f"Table '{name}' not found in schema '{schema}'")
        return nodes.AlterTable(nodes.ObjectName(name, schema), action)

    # -- at work ---------------------------------------------------------------------------

    def _run(self, statement: nodes.Statement) -> None:
        Session(self._database.engine).run_statement(statement).all_rows()

    def _change(self, change: Callable[[Catalog], Catalog]) -> None:
        session = Session(self._database.engine)
        session.write(lambda transaction: transaction.change_catalog(change(transaction.catalog)))


def _set(tags: Mapping[str, Any]) -> nodes.TagChange:
    shown = tuple(nodes.Tag(key, nodes.Literal.of(value)) for key, value in tags.items())
    return nodes.TagChange(nodes.TagOperation.SET, shown)
