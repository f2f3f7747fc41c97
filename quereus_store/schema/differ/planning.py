"""All differences of a schema, found in the order in which one step needs what another has found out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from quereus_store.schema.builder import (
    Surroundings,
    TableSettings,
    build_assertion,
    build_index,
    build_table,
    build_view,
)
from quereus_store.schema.declared import check_declaration, items_of
from quereus_store.schema.dependencies import relations_read
from quereus_store.schema.differ.bodies import (
    DeclaredView,
    Respelling,
    derivation_changed,
    in_creation_order,
    index_changed,
    module_moved,
    placed,
    tags_of_item,
    view_changed,
)
from quereus_store.schema.differ.columns import column_steps
from quereus_store.schema.differ.constraints import constraint_steps
from quereus_store.schema.differ.matching import (
    Named,
    RenamePolicy,
    match_renames,
    require_hints,
    same_tags,
)
from quereus_store.schema.differ.text import identifier, qualified, tag_list
from quereus_store.schema.manager import put_table, put_view
from quereus_store.schema.objects import (
    Catalog,
    IndexPart,
    IndexSchema,
    Schema,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.schema.rename import rename_column, rename_table
from quereus_store.schema.scopes import RelationKey
from quereus_store.sql import nodes, render
from quereus_store.types.logical import ANY, LogicalType


@dataclass(frozen=True, slots=True)
class Migration:
    """Statements in order, and the maintained tables that would move to another module."""

    statements: tuple[str, ...]
    moved: tuple[str, ...] = ()


def migration(
    catalog: Catalog,
    declaration: nodes.DeclareSchema,
    *,
    settings: TableSettings | None = None,
    surroundings: Surroundings | None = None,
    policy: RenamePolicy = RenamePolicy.ALLOW,
) -> Migration:
    """What makes a schema of the catalog as it is declared; no statements if it is.

    Raises ERROR for names that stand twice, hints with two meanings and what ``policy`` forbids.
    """
    check_declaration(declaration)
    return _Differ(
        catalog, declaration, settings or TableSettings(), surroundings or Surroundings(), policy
    ).migration()


@dataclass(slots=True)
class _Phases:
    """The statements by phase, in the order of their execution."""

    rename_tables: list[str] = field(default_factory=list)
    drop_assertions: list[str] = field(default_factory=list)
    drop_tables: list[str] = field(default_factory=list)
    drop_views: list[str] = field(default_factory=list)
    drop_indexes: list[str] = field(default_factory=list)
    create_tables: list[str] = field(default_factory=list)
    create_views: list[str] = field(default_factory=list)
    create_indexes: list[str] = field(default_factory=list)
    alter_tables: list[str] = field(default_factory=list)
    late_views: list[str] = field(default_factory=list)
    late_indexes: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    create_assertions: list[str] = field(default_factory=list)

    def all(self) -> Iterator[str]:
        """Every statement."""
        for name in self.__slots__:
            yield from getattr(self, name)


class _Differ:
    def __init__(
        self,
        catalog: Catalog,
        declaration: nodes.DeclareSchema,
        settings: TableSettings,
        surroundings: Surroundings,
        policy: RenamePolicy,
    ) -> None:
        self.settings, self.surroundings, self.policy = settings, surroundings, policy
        before = catalog.schema(declaration.name)
        self.schema = before.name if before is not None else declaration.name
        self.after = catalog if before is not None else catalog.with_schema(Schema(self.schema))
        self.phases = _Phases()
        self.moved: list[str] = []
        self.renamed_columns: dict[RelationKey, dict[str, str]] = {}
        self.altered: set[RelationKey] = set()
        self.dropped: set[RelationKey] = set()
        every = list(items_of(declaration, nodes.CreateTable))
        self.tables = {fold(item.name.name): item for item in every if item.maintained is None}
        self.maintained = {fold(item.name.name): item for item in every if item.maintained is not None}
        self.views: dict[str, DeclaredView] = {
            fold(item.name.name): item
            for item in declaration.items
            if isinstance(item, nodes.CreateView | nodes.CreateMaterializedView)
        }
        self.indexes = {fold(item.name.name): item for item in items_of(declaration, nodes.CreateIndex)}
        self.assertions = {
            fold(item.name.name): item for item in items_of(declaration, nodes.CreateAssertion)
        }
        self.built = {
            name: build_table(item, schema_name=self.schema, settings=settings, surroundings=surroundings)
            for name, item in self.tables.items()
        }

    def migration(self) -> Migration:
        """All phases, in the order in which one needs what another has found out."""
        self._rename_tables()
        self._rename_columns()
        self._tables()
        self._maintained_tables()
        target = self._target()
        spelling = Respelling(target, self.renamed_columns)
        self._views(target, spelling)
        self._indexes(target, spelling)
        self._assertions()
        return Migration(tuple(self.phases.all()), tuple(self.moved))

    # --- what there is -------------------------------------------------------------------------------------

    def _actual(self) -> Schema:
        found = self.after.schema(self.schema)
        assert found is not None
        return found

    def _plain_tables(self) -> dict[str, TableSchema]:
        return {name: table for name, table in self._actual().tables.items() if table.derivation is None}

    def _key(self, name: str) -> RelationKey:
        return fold(self.schema), fold(name)

    def _qualified(self, name: str) -> str:
        return qualified(self.schema, name)

    # --- renames -------------------------------------------------------------------------------------------

    def _rename_tables(self) -> None:
        actual = self._actual().tables
        declared = {**self.tables, **self.maintained}
        wanted = [Named(item.name.name, tags_of_item(item)) for item in declared.values()]
        present = [Named(table.name, table.tags) for table in actual.values()]
        for name, old in match_renames("table", wanted, present, self.policy).items():
            new = declared[name].name.name
            self.phases.rename_tables.append(
                f"ALTER TABLE {self._qualified(old)} RENAME TO {identifier(new)}"
            )
            self.after = rename_table(self.after, actual[fold(old)], new)

    def _rename_columns(self) -> None:
        for name, declared in self.built.items():
            table = self._plain_tables().get(name)
            if table is None:
                continue
            wanted = [Named(column.name, column.tags) for column in declared.columns]
            present = [Named(column.name, column.tags) for column in table.columns]
            kind = f"column of table '{table.name}'"
            for folded, old in match_renames(kind, wanted, present, self.policy).items():
                position = declared.column_index(folded)
                assert position is not None
                new = declared.columns[position].name
                found = self.after.table(self.schema, name)
                assert found is not None
                self.after = rename_column(self.after, found, old, new)
                self.renamed_columns.setdefault(self._key(name), {})[folded] = old

    # --- tables --------------------------------------------------------------------------------------------

    def _tables(self) -> None:
        actual = self._plain_tables()
        created = [name for name in self.tables if name not in actual]
        gone = [table for name, table in actual.items() if name not in self.tables]
        names = (self.tables[name].name.name for name in created)
        require_hints("table", names, (table.name for table in gone), self.policy)
        for name in created:
            self.phases.create_tables.append(render(placed(self.schema, self.tables[name])))
        for table in _children_first(gone):
            self._drop_table(table)
        for name, item in self.tables.items():
            if name in actual:
                self._alter(item, self.built[name], actual[name])

    def _drop_table(self, table: TableSchema) -> None:
        self.dropped.add(self._key(table.name))
        self.phases.drop_tables.append(f"DROP TABLE IF EXISTS {self._qualified(table.name)}")

    def _alter(self, item: nodes.CreateTable, declared: TableSchema, actual: TableSchema) -> None:
        columns = column_steps(declared, item, actual)
        constraints = constraint_steps(declared, actual, columns.along, self.policy)
        renamed = self.renamed_columns.get(self._key(declared.name), {})
        renames = [
            f"RENAME COLUMN {identifier(old)} TO {identifier(_column_name(declared, new))}"
            for new, old in renamed.items()
        ]
        shape = [
            *columns.add,
            *columns.alter,
            *constraints.rename,
            *constraints.drop,
            *constraints.key,
            *constraints.add,
            *columns.drop,
        ]
        if shape:
            self.altered.add(self._key(declared.name))
        tags = [*columns.tags, *constraints.tags]
        if not same_tags(declared.tags, actual.tags):
            tags.insert(0, f"SET TAGS {tag_list(declared.tags)}")
        table = self._qualified(declared.name)
        self.phases.alter_tables += [f"ALTER TABLE {table} {step}" for step in (*renames, *shape, *tags)]

    def _maintained_tables(self) -> None:
        """Maintained tables in the table form; what is no longer declared in either form is dropped."""
        for name, item in self.maintained.items():
            actual = self._actual().tables.get(name)
            clause = item.maintained
            assert clause is not None
            if actual is not None:
                moved = module_moved(item.module, actual, self.settings.default_module)
                if not moved and not derivation_changed(clause, actual.derivation):
                    continue
                if moved:
                    self.moved.append(actual.name)
                self._drop_table(actual)
            self.phases.create_tables.append(render(placed(self.schema, item)))
        for name, table in self._actual().tables.items():
            if table.derivation is not None and name not in self.maintained and name not in self.views:
                self._drop_table(table)

    # --- views ---------------------------------------------------------------------------------------------

    def _target(self) -> Catalog:
        """The catalog as declared, as far as names matter."""
        target = self.after
        for table in self.built.values():
            target = put_table(target, table)
        for item in self.views.values():
            if isinstance(item, nodes.CreateView):
                target = put_view(target, build_view(item, self.schema))
        return target

    def _views(self, target: Catalog, spelling: Respelling) -> None:
        actual: dict[str, ViewSchema | TableSchema] = dict(self._actual().views)
        actual |= {name: t for name, t in self._actual().tables.items() if t.derivation is not None}
        wanted = [Named(item.name.name, tags_of_item(item)) for item in self.views.values()]
        present = [Named(view.name, view.tags) for view in self._actual().views.values()]
        renames = match_renames("view", wanted, present, self.policy)
        new: dict[str, DeclaredView] = {}
        unhinted = []
        for name, item in self.views.items():
            old = actual.get(name)
            if old is None:
                new[name] = item
                unhinted += [item.name.name] if name not in renames else []
            elif self._view_differs(item, old):
                new[name] = item
                self._drop_view(old)
            elif not same_tags(tags_of_item(item), old.tags):
                self.phases.tags.append(self._view_tags(item))
        gone = [view for name, view in self._actual().views.items() if name not in self.views]
        hinted = {fold(old) for old in renames.values()}
        lost = [view.name for view in gone if fold(view.name) not in hinted]
        require_hints("view", unhinted, lost, self.policy)
        for view in gone:
            self._drop_view(view)
        self._create_views(new, target, spelling)

    def _view_differs(self, item: DeclaredView, old: ViewSchema | TableSchema) -> bool:
        if isinstance(item, nodes.CreateView) or isinstance(old, ViewSchema):
            return view_changed(item, old)
        if module_moved(item.module, old, self.settings.default_module):
            self.moved.append(old.name)
            return True
        return view_changed(item, old)

    def _drop_view(self, view: ViewSchema | TableSchema) -> None:
        if isinstance(view, TableSchema):
            self._drop_table(view)
            return
        self.dropped.add(self._key(view.name))
        self.phases.drop_views.append(f"DROP VIEW IF EXISTS {self._qualified(view.name)}")

    def _view_tags(self, item: DeclaredView) -> str:
        kind = "VIEW" if isinstance(item, nodes.CreateView) else "MATERIALIZED VIEW"
        return f"ALTER {kind} {self._qualified(item.name.name)} SET TAGS {tag_list(tags_of_item(item))}"

    def _create_views(self, new: Mapping[str, DeclaredView], target: Catalog, spelling: Respelling) -> None:
        reads = {name: relations_read(target, self.schema, item.query) for name, item in new.items()}
        late: set[RelationKey] = set()
        for item in in_creation_order(new, reads, self.schema):
            name = fold(item.name.name)
            if reads[name] & (self.altered | late):
                late.add(self._key(name))
                self.phases.late_views.append(render(placed(self.schema, item)))
            else:
                early = spelling.view(self.schema, item)
                self.phases.create_views.append(render(placed(self.schema, early)))

    # --- indexes -------------------------------------------------------------------------------------------

    def _indexes(self, target: Catalog, spelling: Respelling) -> None:
        actual = dict(self._actual_indexes())
        wanted = [Named(item.name.name, tags_of_item(item)) for item in self.indexes.values()]
        present = [Named(index.name, index.tags) for _, index in actual.values()]
        renames = match_renames("index", wanted, present, self.policy)
        unhinted = []
        for name, item in self.indexes.items():
            old = actual.get(name)
            if old is None:
                unhinted += [item.name.name] if name not in renames else []
            elif not self._index_differs(item, *old):
                if not same_tags(tags_of_item(item), old[1].tags):
                    self.phases.tags.append(
                        f"ALTER INDEX {self._qualified(item.name.name)} SET TAGS"
                        f" {tag_list(tags_of_item(item))}"
                    )
                continue
            else:
                self._drop_index(*old)
            late = self._key(item.table.name) in self.altered
            statement = item if late else spelling.index(self.schema, item)
            phase = self.phases.late_indexes if late else self.phases.create_indexes
            phase.append(render(placed(self.schema, statement)))
        gone = [found for name, found in actual.items() if name not in self.indexes]
        hinted = {fold(old) for old in renames.values()}
        lost = [index.name for _, index in gone if fold(index.name) not in hinted]
        require_hints("index", unhinted, lost, self.policy)
        for found in gone:
            self._drop_index(*found)

    def _actual_indexes(self) -> Iterator[tuple[str, tuple[TableSchema, IndexSchema]]]:
        for table in self._actual().tables.values():
            for index in table.indexes:
                if not index.hidden:
                    yield fold(index.name), (table, index)

    def _index_differs(self, item: nodes.CreateIndex, table: TableSchema, index: IndexSchema) -> bool:
        if fold(item.table.name) != fold(table.name):
            return True
        declared = self.built.get(fold(table.name), table)
        wanted = build_index(item, declared, self.surroundings.collations, _any_part)
        return index_changed(_named_parts(wanted, declared), _named_parts(index, table))

    def _drop_index(self, table: TableSchema, index: IndexSchema) -> None:
        if self._key(table.name) not in self.dropped:
            self.phases.drop_indexes.append(f"DROP INDEX IF EXISTS {self._qualified(index.name)}")

    # --- assertions ----------------------------------------------------------------------------------------

    def _assertions(self) -> None:
        actual = self._actual().assertions
        for name, old in actual.items():
            item = self.assertions.get(name)
            expression = None if item is None else build_assertion(item, self.schema).expression
            if expression == old.expression and not self._reads_dropped(old.expression):
                continue
            self.phases.drop_assertions.append(f"DROP ASSERTION IF EXISTS {self._qualified(old.name)}")
            if item is not None:
                self.phases.create_assertions.append(render(placed(self.schema, item)))
        for name, item in self.assertions.items():
            if name not in actual:
                self.phases.create_assertions.append(render(placed(self.schema, item)))

    def _reads_dropped(self, expression: nodes.Expression) -> bool:
        return bool(relations_read(self.after, self.schema, expression) & self.dropped)


def _column_name(table: TableSchema, folded: str) -> str:
    position = table.column_index(folded)
    assert position is not None
    return table.columns[position].name


def _children_first(tables: Iterable[TableSchema]) -> Iterator[TableSchema]:
    """Tables before those that their foreign keys refer to, as far as that can be."""
    waiting = {fold(table.name): table for table in tables}
    while waiting:
        referred = {
            fold(key.parent_table)
            for name, table in waiting.items()
            for key in table.foreign_keys
            if fold(key.parent_table) != name
        }
        ready = [name for name in waiting if name not in referred] or list(waiting)
        for name in ready:
            yield waiting.pop(name)


def _named_parts(index: IndexSchema, table: TableSchema) -> IndexSchema:
    """An index with its columns as expressions, so that indexes of two shapes of a table can be compared."""
    return replace(index, parts=tuple(_named_part(part, table) for part in index.parts))


def _named_part(part: IndexPart, table: TableSchema) -> IndexPart:
    expression = part.expression
    collation = part.collation
    if part.column is not None:
        expression = nodes.ColumnReference(fold(table.columns[part.column].name))
    else:
        collation = "BINARY"
    return IndexPart(None, expression, ANY, True, part.descending, collation)


def _any_part(table: TableSchema, expression: nodes.Expression) -> tuple[LogicalType, bool, str]:
    """Expressions of indexes are compared by their trees; what they yield follows from these."""
    return ANY, True, "BINARY"
