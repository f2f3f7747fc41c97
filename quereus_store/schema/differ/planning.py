"""All differences of a schema, found in the order in which one step needs what another has found out.

First it is settled what becomes of every relation: created, altered in place, dropped, or both
dropped and created.  Then come the steps within tables, which have to know what is dropped, and
last what reads tables: views, indexes, assertions, and maintained tables that have to be computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from quereus_store.schema.builder import (
    Surroundings,
    TableSettings,
    build_assertion,
    build_index,
    build_table,
)
from quereus_store.schema.constraints import NamedConstraint
from quereus_store.schema.declared import check_declaration, items_of
from quereus_store.schema.dependencies import relations_read
from quereus_store.schema.differ.bodies import (
    Bodied,
    DeclaredView,
    Respelling,
    in_creation_order,
    module_moved,
    placed,
    query_of,
    tags_of_item,
    view_changed,
)
from quereus_store.schema.differ.indexes import any_part, index_changed
from quereus_store.schema.differ.matching import (
    Named,
    RenamePolicy,
    match_renames,
    require_hints,
    same_tags,
)
from quereus_store.schema.differ.phases import Migration, Phases
from quereus_store.schema.differ.tables import Alteration, TableSteps
from quereus_store.schema.differ.text import identifier, names_in, qualified, tag_list
from quereus_store.schema.manager import put_table, put_view, remove_table, tables_of
from quereus_store.schema.objects import (
    Catalog,
    CheckConstraint,
    Derivation,
    ForeignKey,
    IndexSchema,
    Schema,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.schema.rename import rename_column, rename_table
from quereus_store.schema.scopes import RelationKey
from quereus_store.sql import nodes, render


def migration(
    catalog: Catalog,
    declaration: nodes.DeclareSchema,
    *,
    settings: TableSettings | None = None,
    view_module: str = "memory",
    surroundings: Surroundings | None = None,
    policy: RenamePolicy = RenamePolicy.ALLOW,
) -> Migration:
    """What makes a schema of the catalog as it is declared; no statements if it is.

    ``view_module`` is where a materialized view without USING lives.  Raises ERROR for names that stand
    twice, hints with two meanings and what ``policy`` forbids.
    """
    check_declaration(declaration)
    differ = _Differ(
        catalog,
        declaration,
        settings or TableSettings(),
        view_module,
        surroundings or Surroundings(),
        policy,
    )
    return differ.migration()


class _Differ:
    def __init__(
        self,
        catalog: Catalog,
        declaration: nodes.DeclareSchema,
        settings: TableSettings,
        view_module: str,
        surroundings: Surroundings,
        policy: RenamePolicy,
    ) -> None:
        self.settings, self.surroundings, self.policy = settings, surroundings, policy
        self.view_module = view_module
        before = catalog.schema(declaration.name)
        self.schema = before.name if before is not None else declaration.name
        self.after = catalog if before is not None else catalog.with_schema(Schema(self.schema))
        self.phases = Phases()
        self.moved: list[str] = []
        self.renamed_columns: dict[RelationKey, dict[str, str]] = {}
        self.alterations: dict[str, Alteration] = {}
        self.steps: dict[str, TableSteps] = {}
        self.dropped: set[RelationKey] = set()
        self.created: set[RelationKey] = set()
        self.late: set[RelationKey] = set()
        self.tables = {fold(item.name.name): item for item in items_of(declaration, nodes.CreateTable)}
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
        new_tables = self._match_tables()
        new_views = self._match_views()
        self._match_readers(new_tables, new_views)
        self._alter_tables()
        target = self._target()
        spelling = Respelling(target, self.renamed_columns)
        self._create(new_tables, new_views, target, spelling)
        self._indexes(spelling)
        self._assertions()
        attached = (self.built[name].name for name, steps in self.steps.items() if steps.attaches)
        remade = frozenset(name for _, name in self._remade())
        return Migration(tuple(self.phases.all()), tuple(self.moved), tuple(attached), remade)

    # --- what there is -------------------------------------------------------------------------------------

    def _actual(self) -> Schema:
        found = self.after.schema(self.schema)
        assert found is not None
        return found

    def _key(self, name: str) -> RelationKey:
        return fold(self.schema), fold(name)

    def _qualified(self, name: str) -> str:
        return qualified(self.schema, name)

    def _reads(self, catalog: Catalog, schema: str, body: nodes.Node) -> frozenset[RelationKey]:
        """What a body reads, directly or through plain views."""
        found: set[RelationKey] = set()
        waiting = set(relations_read(catalog, schema, body))
        while waiting:
            key = waiting.pop()
            found.add(key)
            view = catalog.view(*key)
            if view is not None:
                waiting |= relations_read(catalog, view.schema, view.query) - found
        return frozenset(found)

    # --- renames -------------------------------------------------------------------------------------------

    def _rename_tables(self) -> None:
        actual = self._actual().tables
        wanted = [Named(item.name.name, tags_of_item(item)) for item in self.tables.values()]
        present = [Named(table.name, table.tags) for table in actual.values()]
        for name, old in match_renames("table", wanted, present, self.policy).items():
            new = self.tables[name].name.name
            self.phases.rename_tables.append(
                f"ALTER TABLE {self._qualified(old)} RENAME TO {identifier(new)}"
            )
            self.after = rename_table(self.after, actual[fold(old)], new)

    def _rename_columns(self) -> None:
        for name, declared in self.built.items():
            table = self._actual().tables.get(name)
            if table is None or (table.derivation is not None and declared.derivation is not None):
                continue
            wanted = [Named(column.name, column.tags) for column in declared.columns]
            present = [Named(column.name, column.tags) for column in table.columns]
            kind = f"column of table '{table.name}':"
            for folded, old in match_renames(kind, wanted, present, self.policy).items():
                position = declared.column_index(folded)
                assert position is not None
                new = declared.columns[position].name
                found = self.after.table(self.schema, name)
                assert found is not None
                self.after = rename_column(self.after, found, old, new)
                self.renamed_columns.setdefault(self._key(name), {})[folded] = old

    # --- tables --------------------------------------------------------------------------------------------

    def _match_tables(self) -> list[nodes.CreateTable]:
        """Settle what becomes of tables; those that are to be created."""
        actual = self._actual().tables
        new = []
        for name, item in self.tables.items():
            table = actual.get(name)
            if table is None or not self._stays(item, self.built[name], table):
                new.append(item)
                self.created.add(self._key(name))
        gone = [
            table for name, table in actual.items() if table.derivation is None and name not in self.tables
        ]
        ordinary = (item.name.name for item in new if item.maintained is None)
        require_hints("table", ordinary, (table.name for table in gone), self.policy)
        for table in self._referring_first(gone):
            self._drop_table(table)
        for name, table in actual.items():
            if table.derivation is not None and name not in self.tables and name not in self.views:
                self._drop_table(table)
        return new

    def _stays(self, item: nodes.CreateTable, declared: TableSchema, actual: TableSchema) -> bool:
        """Whether a table is altered in place; if not, it is dropped."""
        renamed = self.renamed_columns.get(self._key(declared.name), {})
        alteration = Alteration.of(item, declared, actual, renamed)
        if declared.derivation is not None and actual.derivation is not None:
            moved = module_moved(item.module, actual, self.settings.default_module)
            if moved:
                self.moved.append(actual.name)
            if moved or alteration.changes_shape:
                self._drop_table(actual)
                return False
        self.alterations[fold(declared.name)] = alteration
        return True

    def _referring_first(self, tables: Iterable[TableSchema]) -> Iterator[TableSchema]:
        """Tables before those that their keys and expressions refer to, as far as that can be."""
        waiting = {self._key(table.name): table for table in tables}
        referred = {key: self._referred(table) - {key} for key, table in waiting.items()}
        while waiting:
            needed = frozenset[RelationKey]().union(*(referred[key] for key in waiting))
            for key in [key for key in waiting if key not in needed] or list(waiting):
                yield waiting.pop(key)

    def _referred(self, table: TableSchema) -> frozenset[RelationKey]:
        """What has to stay as long as a table does."""
        expressions = [check.expression for check in table.checks]
        for column in table.columns:
            expressions += [each for each in (column.default, column.generated) if each is not None]
        read = (self._reads(self.after, table.schema, each) for each in expressions)
        return frozenset(map(self._parent, table.foreign_keys)).union(*read)

    def _drop_table(self, table: TableSchema) -> None:
        self.dropped.add(self._key(table.name))
        statement = f"DROP TABLE IF EXISTS {self._qualified(table.name)}"
        if table.derivation is None:
            self.phases.drop_tables.append(statement)
        else:
            # What was made later may read what was made before.
            self.phases.drop_maintained.insert(0, statement)

    def _alter_tables(self) -> None:
        """The steps within tables, one table after the other as far as these do not need each other."""
        phases = self.phases
        for name, alteration in self.alterations.items():
            steps = self.steps[name] = alteration.steps(
                self.policy,
                self._uses(alteration.actual, self.dropped),
                self._uses(alteration.actual, self._remade()),
            )
            phases.loosen_tables += steps.early + self._loosened_defaults(alteration)
            phases.alter_tables += steps.block
            late = bool(steps.references) and self._refers_to_altered(alteration)
            late |= bool(steps.drop_columns) and self._is_referred_to(alteration)
            (phases.late_references if late else phases.alter_tables).extend(steps.references)
            (phases.late_drops if late else phases.alter_tables).extend(steps.drop_columns)
            (phases.late_tags if late else phases.alter_tables).extend(steps.tags)
            phases.attach += steps.attach

    def _loosened_defaults(self, alteration: Alteration) -> list[str]:
        """DROP DEFAULT of what would keep a relation that is dropped, before columns get their names."""
        declared, actual = alteration.declared, alteration.actual
        found = []
        for column in actual.columns:
            if column.default is None or not self.dropped:
                continue
            position = declared.column_index(column.name)
            stays = position is not None and declared.columns[position].default == column.default
            read = self._reads(self.after, actual.schema, column.default)
            if not stays and not read.isdisjoint(self.dropped):
                name = identifier(alteration.renamed.get(fold(column.name), column.name))
                found.append(f"ALTER TABLE {self._qualified(actual.name)} ALTER COLUMN {name} DROP DEFAULT")
        return found

    def _remade(self) -> set[RelationKey]:
        return self.dropped & self.created

    def _parent(self, key: ForeignKey) -> RelationKey:
        return fold(key.parent_schema or self.schema), fold(key.parent_table)

    def _refers_to_altered(self, alteration: Alteration) -> bool:
        """Whether a declared foreign key has a parent that is altered too: its new columns come first."""
        others = {self._key(name) for name in self.alterations} - {self._key(alteration.declared.name)}
        return any(self._parent(key) in others for key in alteration.declared.foreign_keys)

    def _is_referred_to(self, alteration: Alteration) -> bool:
        """Whether another altered table refers to this one: it lets go of columns first."""
        target = self._key(alteration.actual.name)
        others = (other.actual for other in self.alterations.values() if other is not alteration)
        return any(self._parent(key) == target for other in others for key in other.foreign_keys)

    def _uses(self, table: TableSchema, relations: Set[RelationKey]) -> Callable[[NamedConstraint], bool]:
        """Tells whether a constraint of a table refers to one of these relations."""

        def uses(constraint: NamedConstraint) -> bool:
            if isinstance(constraint, ForeignKey):
                return self._parent(constraint) in relations
            if not relations or not isinstance(constraint, CheckConstraint):
                return False
            read = self._reads(self.after, table.schema, constraint.expression)
            return not relations.isdisjoint(read)

        return uses

    # --- views and maintained tables -----------------------------------------------------------------------

    def _match_views(self) -> dict[str, DeclaredView]:
        """Settle what becomes of views, plain and materialized; those that are to be created."""
        schema = self._actual()
        actual: dict[str, ViewSchema | TableSchema] = dict(schema.views)
        actual |= {name: table for name, table in schema.tables.items() if table.derivation is not None}
        wanted = [Named(item.name.name, tags_of_item(item)) for item in self.views.values()]
        present = [Named(view.name, view.tags) for view in schema.views.values()]
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
        self.created |= {self._key(name) for name in new}
        gone = [view for name, view in schema.views.items() if name not in self.views]
        hinted = {fold(old) for old in renames.values()}
        lost = [view.name for view in gone if fold(view.name) not in hinted]
        require_hints("view", unhinted, lost, self.policy)
        for view in gone:
            self._drop_view(view)
        return new

    def _view_differs(self, item: DeclaredView, old: ViewSchema | TableSchema) -> bool:
        if isinstance(item, nodes.CreateView) or isinstance(old, ViewSchema):
            return view_changed(item, old)
        if module_moved(item.module, old, self.view_module):
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

    def _match_readers(self, new_tables: list[nodes.CreateTable], new_views: dict[str, DeclaredView]) -> None:
        """Maintained tables that are as declared, but whose sources change under them, are made anew.

        Those of another schema are computed anew.
        """
        changed = self._remade()
        for key, table, derivation in self._staying():
            read = self._reads(self.after, table.schema, derivation.query)
            if read.isdisjoint(changed) and not any(
                self._key(name) in read and alteration.reaches(derivation.query)
                for name, alteration in self.alterations.items()
            ):
                continue
            changed.add(key)
            if key[0] != fold(self.schema):
                name = qualified(table.schema, table.name)
                self.phases.refresh.append(f"REFRESH MATERIALIZED VIEW {name}")
                continue
            self._drop_table(table)
            self.created.add(key)
            if key[1] in self.views:
                new_views[key[1]] = self.views[key[1]]
            else:
                new_tables.append(self.tables[key[1]])
                del self.alterations[key[1]]

    def _staying(self) -> Iterator[tuple[RelationKey, TableSchema, Derivation]]:
        """Maintained tables that exist and stay so, each after those that it reads."""
        waiting: dict[RelationKey, tuple[TableSchema, Derivation]] = {}
        for table in tables_of(self.after):
            key = (fold(table.schema), fold(table.name))
            alteration = self.alterations.get(key[1]) if key[0] == fold(self.schema) else None
            detached = alteration is not None and alteration.item.maintained is None
            if table.derivation is not None and key not in self.dropped and not detached:
                waiting[key] = table, table.derivation
        reads = {
            key: self._reads(self.after, table.schema, derivation.query)
            for key, (table, derivation) in waiting.items()
        }
        while waiting:
            ready = [key for key in waiting if reads[key].isdisjoint(waiting.keys() - {key})]
            for key in ready or list(waiting):
                table, derivation = waiting.pop(key)
                yield key, table, derivation

    def _target(self) -> Catalog:
        """The catalog as declared, as far as names matter: a materialized view is a view there."""
        target = self.after
        for table in self.built.values():
            target = put_table(target, table)
        for item in self.views.values():
            old = target.table(self.schema, item.name.name)
            if old is not None:
                target = remove_table(target, old)
            view = ViewSchema(self.schema, item.name.name, item.query, item.columns or None)
            target = put_view(target, view)
        return target

    def _create(
        self,
        tables: Iterable[nodes.CreateTable],
        views: Mapping[str, DeclaredView],
        target: Catalog,
        spelling: Respelling,
    ) -> None:
        """Ordinary tables first, then whatever has a body after what its body reads.

        What cannot be as declared before the alterations comes after them.
        """
        bodies: dict[str, Bodied] = dict(views)
        for table in tables:
            if table.maintained is None:
                self.phases.create_tables.append(render(placed(self.schema, table)))
            else:
                bodies[fold(table.name.name)] = table
        reads = {name: self._reads(target, self.schema, query_of(item)) for name, item in bodies.items()}
        for item in in_creation_order(bodies, reads, self.schema):
            name = fold(item.name.name)
            if reads[name] & self.late or any(
                self._key(table) in reads[name] and alteration.comes_before(item)
                for table, alteration in self.alterations.items()
            ):
                self.late.add(self._key(name))
                self.phases.late_views.append(render(placed(self.schema, item)))
            elif isinstance(item, nodes.CreateTable) and not any(
                self._key(other) in reads[name] for other in views
            ):
                self.phases.create_tables.append(render(placed(self.schema, item)))
            else:
                early = spelling.view(self.schema, item) if isinstance(item, nodes.CreateView) else item
                self.phases.create_views.append(render(placed(self.schema, early)))

    # --- indexes -------------------------------------------------------------------------------------------

    def _indexes(self, spelling: Respelling) -> None:
        actual = dict(self._actual_indexes())
        wanted = [Named(item.name.name, tags_of_item(item)) for item in self.indexes.values()]
        present = [Named(index.name, index.tags) for _, index in actual.values()]
        renames = match_renames("index", wanted, present, self.policy)
        unhinted = []
        for name, item in self.indexes.items():
            old = actual.get(name)
            if old is None:
                unhinted += [item.name.name] if name not in renames else []
            elif self._index_differs(item, *old):
                self._drop_index(*old)
            else:
                if not same_tags(tags_of_item(item), old[1].tags):
                    tags = tag_list(tags_of_item(item))
                    self.phases.tags.append(f"ALTER INDEX {self._qualified(item.name.name)} SET TAGS {tags}")
                continue
            late = self._is_late(item)
            statement = item if late else spelling.index(self.schema, item)
            phase = self.phases.late_indexes if late else self.phases.create_indexes
            phase.append(render(placed(self.schema, statement)))
        gone = [found for name, found in actual.items() if name not in self.indexes]
        hinted = {fold(old) for old in renames.values()}
        lost = [index.name for _, index in gone if fold(index.name) not in hinted]
        require_hints("index", unhinted, lost, self.policy)
        for found in gone:
            self._drop_index(*found)

    def _is_late(self, item: nodes.CreateIndex) -> bool:
        """Whether an index can be made only after the alterations of its table.

        Its columns are there or have their collation only then, or a constraint still has its name.
        """
        alteration = self.alterations.get(fold(item.table.name))
        if alteration is None:
            return self._key(item.table.name) in self.late
        held = {fold(each.index) for each in alteration.actual.unique_constraints if not each.from_index}
        unready = alteration.columns.fresh | alteration.columns.recollated
        return fold(item.name.name) in held or not unready.isdisjoint(names_in(item))

    def _actual_indexes(self) -> Iterator[tuple[str, tuple[TableSchema, IndexSchema]]]:
        for table in self._actual().tables.values():
            for index in table.indexes:
                if not index.hidden:
                    yield fold(index.name), (table, index)

    def _index_differs(self, item: nodes.CreateIndex, table: TableSchema, index: IndexSchema) -> bool:
        if fold(item.table.name) != fold(table.name) or self._key(table.name) in self.dropped:
            return True
        declared = self.built.get(fold(table.name), table)
        wanted = build_index(item, declared, self.surroundings.collations, any_part)
        if index_changed(wanted, declared, index, table):
            return True
        alteration = self.alterations.get(fold(table.name))
        remade = alteration.columns.remade if alteration is not None else frozenset()
        return bool(remade) and not remade.isdisjoint(
            fold(table.columns[part.column].name) for part in index.parts if part.column is not None
        )

    def _drop_index(self, table: TableSchema, index: IndexSchema) -> None:
        if self._key(table.name) not in self.dropped:
            self.phases.drop_indexes.append(f"DROP INDEX IF EXISTS {self._qualified(index.name)}")

    # --- assertions ----------------------------------------------------------------------------------------

    def _assertions(self) -> None:
        actual = self._actual().assertions
        for name, old in actual.items():
            item = self.assertions.get(name)
            expression = None if item is None else build_assertion(item, self.schema).expression
            read = self._reads(self.after, self.schema, old.expression)
            if expression == old.expression and read.isdisjoint(self.dropped):
                continue
            self.phases.drop_assertions.append(f"DROP ASSERTION IF EXISTS {self._qualified(old.name)}")
            if item is not None:
                self.phases.create_assertions.append(render(placed(self.schema, item)))
        for name, item in self.assertions.items():
            if name not in actual:
                self.phases.create_assertions.append(render(placed(self.schema, item)))
