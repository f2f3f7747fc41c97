"""``check`` finds rows that are not as declared; here the declaration came after the rows."""

import io
from pathlib import Path

import quereus_store
from quereus_store.cli.checking import check_database

ORPHANS = """
create table parent (id integer primary key);
create table child (id integer primary key, p integer null references parent (id));
insert into parent values (1);
pragma foreign_keys = off;
insert into child values (1, 1), (2, null), (3, 9), (4, 9);
"""


def checked(connection: quereus_store.Connection) -> tuple[bool, list[str]]:
    stream = io.StringIO()
    return check_database(connection, stream), stream.getvalue().splitlines()


def test_orphans_are_counted(tmp_path: Path) -> None:
    with quereus_store.connect(str(tmp_path / "app.qdb")) as connection:
        connection.executescript(ORPHANS)
        in_order, lines = checked(connection)
    assert not in_order
    assert lines == [
        "storage: rows, keys, indexes and counts in order",
        "table parent: 1 row, in order",
        "table child: 4 rows, 1 problem",
        "  child: 2 rows have no parent in parent (_fk_child_p)",
        "1 problems found.",
    ]


def test_a_missing_parent_table_is_told() -> None:
    with quereus_store.connect(":memory:") as connection:
        connection.executescript(ORPHANS + "drop table parent;")
        in_order, lines = checked(connection)
    assert not in_order
    assert "  child: the foreign key _fk_child_p refers to parent, which is not there" in lines


def test_a_view_over_a_dropped_table_is_told() -> None:
    with quereus_store.connect(":memory:") as connection:
        connection.executescript(
            "create table t (id integer primary key); create view v as select id from t;"
        )
        assert checked(connection) == (
            True,
            [
                "storage: rows, keys, indexes and counts in order",
                "table t: 0 rows, in order",
                "view v: in order",
                "The database is in order.",
            ],
        )
        connection.execute("drop table t")
        in_order, lines = checked(connection)
    assert not in_order
    assert "view v: not readable" in lines
    assert any(line.startswith("  v: cannot be read: ") for line in lines)
