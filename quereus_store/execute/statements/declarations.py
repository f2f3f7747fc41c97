"""DECLARE, DIFF, APPLY and EXPLAIN SCHEMA (seed: sql-ddl, section 2.0; schema, Declarative Schema).

A declaration is kept in the database's engine until the process ends.  APPLY runs the differ's
statements, then the seed rows, as one atomic step: a migration that fails halfway has not happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.execute.results import Result
from quereus_store.execute.statements.definitions import default_module, table_settings, table_surroundings
from quereus_store.execute.statements.lenses import deploy
from quereus_store.execute.transactions import Transaction
from quereus_store.modules.contract import SchemaBatches
from quereus_store.plan.expressions import Column
from quereus_store.schema.clauses import plain_arguments
from quereus_store.schema.declared import check_declaration, check_seeds, declaration_hash, items_of
from quereus_store.schema.differ import Migration, RenamePolicy, migration
from quereus_store.schema.manager import MAIN, add_schema
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes, parse_script
from quereus_store.types import TEXT
from quereus_store.types.json import parse_json

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def declare_schema(session: Session, statement: nodes.DeclareSchema, parameters: Any) -> Result:
    """Remember a declaration; an earlier one of the same schema is forgotten."""
    check_seeds(statement)
    session.engine.declarations[fold(statement.name)] = statement
    return Result()


def explain_schema(session: Session, statement: nodes.ExplainSchema, parameters: Any) -> Result:
    """One row: the hash of a declaration, with the version that was asked for."""
    declaration = _declaration(session, statement.name, statement.position)
    text = f"hash:{declaration_hash(declaration)}"
    if statement.version is not None:
        text = f"version:{statement.version},{text}"
    return Result((Column(1, "info", TEXT, False),), [[(text,)]])


def diff_schema(session: Session, statement: nodes.DiffSchema, parameters: Any) -> Result:
    """The statements that APPLY would run, one a row; none for a logical schema, which is proved."""
    declared = _declaration(session, statement.name, statement.position)
    if declared.logical:
        check_declaration(declared)
        deploy(session, declared, statement.position, dry_run=True)
        return Result((Column(1, "ddl", TEXT, False),), [[]])
    declaration = _physical(session, statement.name, statement.position)

    def compare(transaction: Transaction) -> Migration:
        return _migration(session, transaction, declaration, RenamePolicy.ALLOW)

    rows = [(text,) for text in session.write(compare).statements]
    return Result((Column(1, "ddl", TEXT, False),), [rows])


def apply_schema(session: Session, statement: nodes.ApplySchema, parameters: Any) -> Result:
    """Make a schema as it is declared, and insert its seed rows if asked to."""
    declared = _declaration(session, statement.name, statement.position)
    options = _options(statement)
    if declared.logical:
        check_declaration(declared)
        dry = options.get("dry_run") is True or options.get("validate_only") is True
        deploy(session, declared, statement.position, dry_run=dry)
        return Result()
    declaration = _physical(session, statement.name, statement.position)
    atomically(session, lambda: _apply(session, statement, declaration, options))
    return Result()


def atomically(session: Session, work: Callable[[], None]) -> None:
    """Run statements of a session as one step: they all happen, or none does."""
    if session.transaction is not None:
        session.write(lambda transaction: work())
        return
    session.begin()
    assert session.transaction is not None
    # Nobody wrote BEGIN: what is refused inside a user's transaction is not refused here.
    session.transaction.explicit = False
    try:
        work()
    except BaseException:
        session.rollback()
        raise
    session.commit()


# --- declarations -----------------------------------------------------------------------------------------


def _declaration(session: Session, name: str | None, position: SourcePosition | None) -> nodes.DeclareSchema:
    wanted = name or MAIN
    found = session.engine.declarations.get(fold(wanted))
    if found is None:
        raise sql_error(StatusCode.ERROR, f"No declared schema found for '{wanted}'", position)
    return found


def _physical(session: Session, name: str | None, position: SourcePosition | None) -> nodes.DeclareSchema:
    """A declaration whose tables hold rows, its tables' module spelled out where it names a default."""
    declaration = _declaration(session, name, position)
    module = _default_module(declaration)
    if module is None:
        return declaration
    items = tuple(
        replace(item, module=module) if isinstance(item, nodes.CreateTable) and item.module is None else item
        for item in declaration.items
    )
    return replace(declaration, items=items)


def _default_module(declaration: nodes.DeclareSchema) -> nodes.ModuleClause | None:
    """USING (default_vtab_module = …, default_vtab_args = …) as the clause that tables then have."""
    settings = {setting.name.lower(): setting.value.value for setting in declaration.settings if setting.name}
    name = settings.get("default_vtab_module")
    if not isinstance(name, str):
        return None
    written = settings.get("default_vtab_args") or "{}"
    try:
        arguments = parse_json(written) if isinstance(written, str) else None
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise sql_error(StatusCode.MISUSE, "default_vtab_args must be a JSON object", declaration.position)
    plain = plain_arguments(arguments)
    pairs = (nodes.ModuleArgument(nodes.Literal.of(value), key) for key, value in plain.items())
    return nodes.ModuleClause(name, tuple(pairs))


# --- comparing and migrating ------------------------------------------------------------------------------


def _migration(
    session: Session, transaction: Transaction, declaration: nodes.DeclareSchema, policy: RenamePolicy
) -> Migration:
    surroundings = replace(table_surroundings(session, transaction), check_expressions=None)
    schema = declaration.name
    found = transaction.catalog.schema(schema)
    if found is not None and found.lens is not None:
        message = f"schema '{schema}' already exists as a logical schema; cannot apply it as physical"
        raise sql_error(StatusCode.ERROR, message)
    return migration(
        transaction.catalog,
        declaration,
        settings=table_settings(session, schema),
        view_module=default_module(session, schema, session.engine.default_module),
        surroundings=surroundings,
        policy=policy,
    )


def _options(statement: nodes.ApplySchema) -> dict[str, Any]:
    return {option.name.lower(): option.value.value for option in statement.options if option.name}


def _policy(options: dict[str, Any], position: SourcePosition | None) -> RenamePolicy:
    written = options.get("rename_policy", RenamePolicy.ALLOW.value)
    try:
        return RenamePolicy(str(written).lower())
    except ValueError:
        choices = ", ".join(f"'{policy.value}'" for policy in RenamePolicy)
        raise sql_error(
            StatusCode.ERROR, f"Invalid rename_policy '{written}': it is one of {choices}", position
        ) from None


def _apply(
    session: Session,
    statement: nodes.ApplySchema,
    declaration: nodes.DeclareSchema,
    options: dict[str, Any],
) -> None:
    policy = _policy(options, statement.position)
    plan = session.write(lambda transaction: _migration(session, transaction, declaration, policy))
    if plan.moved and options.get("allow_destructive") is not True:
        names = ", ".join(f"'{name}'" for name in plan.moved)
        raise sql_error(
            StatusCode.ERROR,
            f"backing-module change on maintained table(s) {names} is destructive (drop + recreate, new"
            " incarnation). Re-run with options (allow_destructive = true) to migrate the backing.",
            statement.position,
        )
    if options.get("dry_run") is True or options.get("validate_only") is True:
        return
    session.write(lambda transaction: _ensure_schema(transaction, declaration.name))
    doing = ""
    try:
        with schema_batch(session, declaration.name if plan.statements else None):
            for text in plan.statements:
                doing = f"while applying schema {declaration.name}: {text}"
                for step in parse_script(text):
                    session.run_statement(step).all_rows()
        if plan.attached:
            session.write(lambda transaction: _check_attached(session, transaction, declaration, plan))
        if statement.with_seed:
            for seed in items_of(declaration, nodes.SeedData):
                doing = f"while inserting the seed rows of {seed.table}"
                _insert_seed(session, declaration.name, seed)
    except Error as error:
        # A position in a statement that nobody wrote would mislead; the statement itself helps.
        error.position = None
        error.located(statement.position)
        if doing:
            error.add_note(doing)
        raise


@contextmanager
def schema_batch(session: Session, schema: str | None) -> Iterator[None]:
    """Tell the modules that ask for it that schema changes belong together; None tells nobody."""
    modules = [module for module in session.engine.modules.values() if isinstance(module, SchemaBatches)]
    begun: list[SchemaBatches] = []
    failure: BaseException | None = None
    try:
        for module in modules if schema is not None else ():
            module.begin_schema_batch(str(schema))
            begun.append(module)
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        _end_batches(begun, str(schema), failure)


def _end_batches(begun: list[SchemaBatches], schema: str, failure: BaseException | None) -> None:
    """Every module hears of the end, the last one first; the first failure is the one that is raised."""
    first = failure
    for module in reversed(begun):
        try:
            module.end_schema_batch(schema, first)
        except Exception as error:
            first = first or error
    if first is not None and first is not failure:
        raise first


def _check_attached(
    session: Session, transaction: Transaction, declaration: nodes.DeclareSchema, done: Migration
) -> None:
    """A table that got a body has the body's shape now; ERROR if that, or its module, is not as declared."""
    left = _migration(session, transaction, declaration, RenamePolicy.DENY)
    moved = {fold(name) for name in left.moved}
    for name in done.attached:
        if fold(name) in moved:
            table = transaction.catalog.table(declaration.name, name)
            assert table is not None
            raise sql_error(
                StatusCode.ERROR,
                f"table '{name}' lives in module '{table.module}', and a body does not move it:"
                " declare it there, or drop it first",
            )
        if fold(name) in left.remade:
            raise sql_error(
                StatusCode.ERROR,
                f"the body of maintained table '{name}' does not give the columns and key that are declared",
            )


def _ensure_schema(transaction: Transaction, name: str) -> None:
    if transaction.catalog.schema(name) is None:
        transaction.change_catalog(add_schema(transaction.catalog, fold(name)))


def _insert_seed(session: Session, schema: str, seed: nodes.SeedData) -> None:
    """Insert a table's seed rows, passing over those whose primary key is there already."""
    if not seed.rows:
        return

    def key_of(transaction: Transaction) -> tuple[str, ...]:
        table = transaction.catalog.table(schema, seed.table)
        if table is None:
            raise sql_error(StatusCode.NOTFOUND, f"Table not found: {schema}.{seed.table}")
        return tuple(table.columns[part.column].name for part in table.primary_key.parts)

    insert = nodes.Insert(
        nodes.TableReference(seed.table, schema),
        nodes.Query(nodes.Values(seed.rows)),
        seed.columns,
        upserts=(nodes.UpsertClause(session.write(key_of)),),
    )
    session.run_statement(insert).all_rows()
