"""Walking and rebuilding trees."""

from quereus_store.sql import nodes, parse_statement, render, transform, walk
from quereus_store.sql.traversal import children, parameters

TEXT = "select a, t.a + ? from t where a in (select b from t as u where b = :x) order by a"


def test_walk_meets_every_node_before_its_children():
    tree = parse_statement(TEXT)
    order = list(walk(tree))
    place = {id(node): index for index, node in enumerate(order)}
    assert order[0] is tree
    assert all(place[id(child)] > place[id(node)] for node in order for child in children(node))
    assert sum(isinstance(node, nodes.ColumnReference) for node in order) == 6


def test_transform_rebuilds_what_changes_and_shares_the_rest():
    tree = parse_statement(TEXT)

    def rename(node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.ColumnReference) and node.column == "a":
            return nodes.ColumnReference("z", node.table, node.schema, position=node.position)
        return node

    changed = transform(tree, rename)
    assert render(changed) == (
        "select z, t.z + ? from t where z in (select b from t as u where b = :x) order by z"
    )
    assert changed.body.source is tree.body.source
    assert changed.body.where.query is tree.body.where.query
    assert transform(tree, lambda node: node) is tree


def test_rows_of_values_are_reached():
    tree = parse_statement("values (1, 2), (3, ?)")
    assert sum(isinstance(node, nodes.Literal) for node in walk(tree)) == 3
    assert parameters(tree) == (nodes.Parameter(1),)
