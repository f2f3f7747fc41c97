"""Schema objects from SQL, for the tests of this folder."""

from quereus_store.schema.builder import TableSettings, build_assertion, build_index, build_table, build_view
from quereus_store.schema.constraints import add_index
from quereus_store.schema.manager import empty_catalog, put_assertion, put_table, put_view
from quereus_store.sql import nodes
from quereus_store.sql.parser import parse_script, parse_statement
from quereus_store.types import INTEGER


def table(sql, *indexes, schema="main", **options):
    """The table of a CREATE TABLE and some CREATE INDEX statements."""
    built = build_table(parse_statement(sql), schema_name=schema, **options)
    for statement in indexes:
        built = add_index(built, index(built, statement)).table
    return built


def index(of, sql):
    """The index of a CREATE INDEX; expressions count as nullable integers."""
    return build_index(parse_statement(sql), of, part_typer=lambda table, part: (INTEGER, True, "BINARY"))


def catalog(script):
    """A catalog from a script of CREATE statements."""
    made = empty_catalog()
    for node in parse_script(script):
        schema = node.name.schema or "main"
        match node:
            case nodes.CreateTable():
                settings = TableSettings(nullable_by_default=True)
                made = put_table(made, build_table(node, schema_name=schema, settings=settings))
            case nodes.CreateView():
                made = put_view(made, build_view(node, schema))
            case nodes.CreateAssertion():
                made = put_assertion(made, build_assertion(node, schema))
            case nodes.CreateIndex():
                owner = made.table(node.table.schema or "main", node.table.name)
                made = put_table(made, add_index(owner, build_index(node, owner)).table)
    return made
