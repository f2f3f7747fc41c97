"""Keys that are coarser than the source's: which bodies have them, what is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quereus_store
from quereus_store import Connection
from quereus_store.events import RowMerge
from tests.connecting import STORAGES, connected
from tests.views.test_equality import QUIET
from tests.views.test_keys import columns

TABLES = """
create table label (name text primary key, uses integer, number integer unique);
create table pair (a text collate nocase, b text, v integer, primary key (a, b));
create table kind (name text collate nocase primary key);
"""

# Body, key of the table, and what the warning says of the source's key; None where there is none.
BODIES: list[tuple[str, list[str], str | None]] = [
    ("select name collate nocase as name, uses from label", ["name"], "name: collation BINARY → NOCASE"),
    (
        "select name collate nocase as n, uses from label order by uses",
        ["n"],
        "name: collation BINARY → NOCASE",
    ),
    ("select name collate rtrim as n from label where uses > 1", ["n"], "name: collation BINARY → RTRIM"),
    (
        "select name collate nocase as n from label"
        " where exists (select 1 from kind k where k.name = label.name)",
        ["n"],
        "name: collation BINARY → NOCASE",
    ),
    (
        "select n collate nocase as n from (select name as n from label) x",
        ["n"],
        "name: collation BINARY → NOCASE",
    ),
    (
        "select b collate nocase as b, a collate rtrim as a from pair",
        ["a", "b"],
        "a: collation NOCASE → RTRIM, b: collation BINARY → NOCASE",
    ),
    # An output that does not coarsen is preferred, and so is another key.
    ("select name collate nocase as n, name as same from label", ["same"], None),
    ("select name collate nocase as n, number from label", ["number"], None),
    # What is finer, or the same, tells all rows apart.
    ("select name collate binary as n from kind", ["n"], None),
    ("select name from kind", ["name"], None),
    ("select distinct name collate nocase as n, uses from label", ["n", "uses"], None),
    (
        "select l.name collate nocase as n, m.number from label l join label m on m.name = l.name",
        ["number"],
        None,
    ),
]

# More than filters, projections and sorts: then what does not tell rows apart is no key.
BAGS = [
    "select name collate nocase as n, uses from label order by uses limit 3",
    "select name collate nocase as n, count(*) as c from label group by name",
    "select l.name collate nocase as n from label l join kind k on k.name = l.name",
    "select upper(name) collate nocase as n from label",
    "select uses from label where name collate nocase = 'a'",
]


@pytest.fixture(params=STORAGES)
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    with connected(request.param, tmp_path) as connection:
        connection.executescript(TABLES)
        yield connection


@pytest.mark.parametrize(("body", "key", "told"), BODIES)
@pytest.mark.parametrize("form", ["create materialized view v as {}", "alter table v set maintained as {}"])
def test_a_coarser_key_is_warned_of(
    body: str, key: list[str], told: str | None, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    con = connected("memory", Path())
    con.executescript(TABLES)
    if form.startswith("alter"):
        con.execute(f"create materialized view v as {body}")
        con.execute("alter table v drop maintained")
        caplog.clear()
    con.execute(form.format(body))
    assert columns(con, "v") == key
    listed = ", ".join(key)
    assert [record.getMessage() for record in caplog.records] == (
        []
        if told is None
        else [
            f"materialized view 'main.v': backing key ({listed}) is coarser than the source primary key"
            f" ({told}); colliding source rows will last-write-win until they are merged"
        ]
    )


@pytest.mark.parametrize("body", BAGS)
def test_where_more_is_done_it_is_a_bag(body: str) -> None:
    con = connected("memory", Path())
    con.executescript(TABLES)
    with pytest.raises(quereus_store.NotSupportedError, match="no provable unique key"):
        con.execute(f"create materialized view v as {body}")


def test_each_merge_that_is_committed_is_told_and_counted(con: Connection) -> None:
    told: list[RowMerge] = []
    con.database.events.on_row_merge(told.append)
    con.execute("insert into label values ('Ab', 1, 1), ('cd', 2, 2)")
    con.execute("create materialized view v as select number, name collate nocase as name, uses from label")
    con.execute("drop materialized view v")
    con.execute("create materialized view v as select uses, name collate nocase as name from label")
    con.execute("insert into label values ('aB', 3, 3)")
    assert told == [RowMerge("main", "v", ("aB",), ("name",), (1, "Ab"), (3, "aB"))]
    assert con.database.events.row_merges == {"main.v": 1}

    # The row that stays changes, also in its spelling: nothing meets.
    con.execute("update label set uses = 4 where name = 'aB'")
    con.execute("update label set name = 'AB' where name = 'aB'")
    assert len(told) == 1
    assert con.database.check() == []
    assert con.execute("select * from v order by name").fetchall() == [(4, "AB"), (2, "cd")]

    # The other one changes and takes its place back.
    con.execute("update label set uses = 5 where name = 'Ab'")
    assert told[1:] == [RowMerge("main", "v", ("Ab",), ("name",), (4, "AB"), (5, "Ab"))]
    con.execute("delete from label where name = 'AB'")
    assert con.execute("select * from v").fetchall() == [(2, "cd")]
    assert len(con.database.check()) == 1  # a refresh would bring 'Ab' back, and so does its next change
    con.execute("update label set uses = 6 where name = 'Ab'")
    assert (len(told), con.database.events.row_merges) == (2, {"main.v": 2})
    con.execute("refresh materialized view v")
    assert con.execute("select * from v order by name").fetchall() == [(6, "Ab"), (2, "cd")]


def test_what_is_rolled_back_is_neither_told_nor_counted(con: Connection) -> None:
    told: list[RowMerge] = []
    con.database.events.on_row_merge(told.append)
    con.execute("insert into label values ('Ab', 1, 1)")
    con.execute("create materialized view v as select name collate nocase as name, uses from label")
    con.begin()
    con.execute("savepoint s")
    con.execute("insert into label values ('aB', 2, 2)")
    con.execute("rollback to s")
    con.execute("insert into label values ('ab', 3, 3)")
    assert told == []
    con.commit()
    assert [merge.new_row for merge in told] == [("ab", 3)]
    con.begin()
    con.execute("insert into label values ('AB', 4, 4)")
    con.rollback()
    assert con.database.events.row_merges == {"main.v": 1}


def test_computing_anew_keeps_the_rows_that_stay(con: Connection) -> None:
    con.execute("insert into kind values ('ab')")
    con.execute(
        "create materialized view v as select name collate nocase as name, uses from label"
        " where exists (select 1 from kind where kind.name = label.name)"
    )
    con.execute("insert into label values ('Ab', 1, 1)")
    con.execute("insert into label values ('aB', 2, 2)")
    merged = dict(con.database.events.row_merges)
    for name in ("x", "y", "z"):
        con.execute("insert into kind values (?)", (name,))
        assert con.execute("select * from v").fetchall() == [("aB", 2)]
    assert con.database.events.row_merges == merged
    con.execute("delete from label where name = 'aB'")
    con.execute("delete from kind where name = 'z'")
    assert con.execute("select * from v").fetchall() == [("Ab", 1)]


names = st.sampled_from(["a", "A", "b", "B", "c"])
changes = st.one_of(
    st.tuples(st.just("insert or replace into label values (?, ?, ?)"), names, st.integers(0, 3)),
    st.tuples(st.just("update label set uses = ? where name = ?"), names, st.integers(0, 3)),
    st.tuples(st.just("delete from label where name = ?"), names, st.none()),
)


@QUIET
@given(steps=st.lists(changes, max_size=15))
def test_the_row_written_last_stays(steps: list[Any]) -> None:
    con = connected("memory", Path())
    con.execute("create table label (name text primary key, uses integer, number integer)")
    con.execute("create materialized view v as select name collate nocase as name, uses from label")
    source: dict[str, int] = {}
    view: dict[str, tuple[str, int]] = {}
    merges = 0
    for statement, name, uses in steps:
        if statement.startswith("delete"):
            con.execute(statement, (name,))
            if source.pop(name, None) is not None:
                view.pop(name.lower(), None)
        else:
            insert = statement.startswith("insert")
            con.execute(statement, (name, uses, 0) if insert else (uses, name))
            known = source.get(name)
            if (known is None and not insert) or known == uses:
                continue  # nothing changes
            source[name] = uses
            merges += name.lower() in view and view[name.lower()][0] != name
            view[name.lower()] = (name, uses)
        assert sorted(con.execute("select * from v").fetchall()) == sorted(view.values())
    assert con.database.events.row_merges.get("main.v", 0) == merges
    con.close()
