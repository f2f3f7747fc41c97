"""Whatever a body is and whatever happens to its sources, a view equals its body after every statement.

Bodies over two tables are drawn by shape (filters, joins, groupings, windows, set operations, views
over views); statements are drawn from all three verbs, alone and within transactions with
savepoints.  Everything is compared value by value and class by class.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quereus_store

TABLES = """
create table item (
  id integer primary key, kind text not null, box integer null, weight real null, n integer not null);
create table box (id integer primary key, place text collate nocase not null, size integer null);
create index item_box on item (box);
create table word (item integer not null references item (id) on delete cascade on update cascade,
  spelled text not null, weight real not null, primary key (item, spelled));
"""

# Bodies by shape; `{i}` and `{b}` are the tables, so that one body may also stand on another's view.
BODIES = (
    "select id, kind, n from item",
    "select id + 1 as next, upper(kind) as k, n * 2 as twice from item where n > 2",
    "select id, box from item where box is not null order by box",
    "select i.id, i.kind, b.place from item i join box b on b.id = i.box",
    "select i.id, i.n, b.size from item i join box b on b.id = i.box where b.size > 1 and i.n < 4",
    "select b.id as bid, i.id as iid, b.size * i.n as v from box b join item i on i.box = b.id",
    "select a.id as a, z.id as z from item a join item z on z.box = a.box and z.id > a.id",
    "select i.id, b.place from item i left join box b on b.id = i.box",
    "select b.id, b.place, i.id as iid, i.n from box b left join item i on i.box = b.id and i.n > 1",
    "select i.id as iid, b.id as bid from item i full join box b on b.id = i.box",
    "select kind, count(*) as c, sum(n) as s from item group by kind",
    "select kind, count(*) as c, sum(n) as s, avg(n) as m, min(n) as lo, max(n) as hi"
    " from item group by kind",
    "select box, count(*) as c, sum(weight) as s, avg(weight) as m, count(weight) as w"
    " from item group by box",
    "select box, sum(weight) as s, max(weight) as m from item where n <> 3 group by box",
    "select weight, count(*) as c, max(n) as m from item group by weight",
    "select kind, count(*) as c, min(weight) as lo, max(weight) as hi from item group by kind",
    "select distinct weight from item",
    "select weight from item union select weight from word",
    "select i.weight, count(*) as c from item i join box b on b.id = i.box group by i.weight",
    "select kind, box, count(*) as c, sum(n) filter (where n > 2) as s from item group by kind, box",
    "select count(*) as c, sum(n) as s, min(weight) as lo from item",
    "select kind, count(distinct n) as d, group_concat(n) as g from item group by kind",
    "select kind, count(*) as c from item group by kind having count(*) > 1",
    "select n % 3 as r, count(*) + 1 as c, sum(n) * 2 as s from item group by n % 3",
    "select b.place, count(*) as c, sum(i.n) as s from item i join box b on b.id = i.box group by b.place",
    "select b.id, count(*) as c, sum(i.n) as s, max(i.n) as m"
    " from item i join box b on b.id = i.box group by b.id",
    "select b.id, b.place, count(i.id) as c, sum(i.n) as s from box b left join item i on i.box = b.id"
    " group by b.id, b.place",
    "select id, kind, count(*) as c, sum(n) as s, max(n) as m from item group by id, kind",
    "select a.id, a.kind, count(distinct z.kind) as d from item a join item z on z.n = a.n"
    " group by a.id, a.kind",
    "select z.box, count(distinct a.n) as d from item a left join item z on z.n = a.box group by z.box",
    "select distinct kind, n from item",
    "select distinct place from box",
    "select kind from item union select place from box",
    "select n from item intersect select size from box",
    "select box from item except select id from box",
    "select id, kind, row_number() over (partition by kind order by n, id) as r from item",
    "select id, box, sum(n) over (partition by box) as s, rank() over (partition by box order by n) as r"
    " from item",
    "select id, kind, r from (select id, kind, row_number() over (partition by kind order by n desc, id) as r"
    " from item) x where r <= 2",
    "select id, n from item where n = (select max(size) from box)",
    "select id, kind from item where exists (select 1 from box where box.id = item.box and box.size > 1)",
    "select id, n from item order by n limit 3",
    "select kind, total from (select kind, sum(n) as total from item group by kind) g where total > 3",
    "with heavy as (select id, box, n from item where n > 1) select h.id, b.place from heavy h join box b"
    " on b.id = h.box",
    "with recursive down(k) as (select max(n) from item union select k - 1 from down where k > 0)"
    " select k from down",
    "select g.kind, g.c, b.id from (select kind, max(box) as m, count(*) as c from item group by kind) g"
    " join box b on b.id = g.m",
    "select w.item, w.spelled, i.n from word w join item i on i.id = w.item",
    "select i.id, w.spelled, w.weight from item i left join word w on w.item = i.id",
    "select i.kind, count(*) as c, sum(w.weight) as s, min(w.spelled) as m"
    " from item i join word w on w.item = i.id"
    " group by i.kind",
    "select i.id, count(w.item) as c, avg(w.weight) as a"
    " from item i left join word w on w.item = i.id group by i.id",
    "select w.item, w.spelled, b.size from word w join item i on i.id = w.item join box b on b.id = i.box",
    "select id, kind from item where id in (select item from word)",
    "select k, count(*) as c from (select kind as k from item union all select place from box) u group by k",
    # constants above what no change can be followed through
    "select distinct 1 as one from item i full join box b on b.id = i.box",
    "select 1 as one, 2 as two from item i full join box b on b.id = i.box intersect select 1, size from box",
    "select 'first' as what from (select id from item order by n, id limit 3) x union select place from box",
    "select distinct 'some' as what from box b left join"
    " (select id, rank() over (order by n) as r from item) x on x.r = b.size",
    "select distinct 'lateral' as what from box b left join lateral"
    " (select i.n from item i where i.box = b.id limit 1) x on true",
    "select distinct 'k' as what from (with recursive down(k) as (select max(n) from item union"
    " select k - 1 from down where k > 0) select k from down) x",
)
OVER_VIEWS = (
    "select * from v0",
    "select count(*) as c from v0",
    "select v.*, b.place as place_of from v0 v left join box b on b.id = 1",
)

ids = st.integers(1, 8)
small = st.integers(0, 5)
boxes = st.integers(1, 4)
maybe = st.none() | small
letters = st.sampled_from("pqr")
weights = st.none() | st.sampled_from([0.5, 1.25, 2.0, -3.0, 0.0, -0.0])
items = (ids, st.sampled_from(["a", "A", "b", "cc"]), st.none() | boxes, weights, small)

# Each statement with what its parameters are drawn from.
STATEMENTS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "insert or replace into item values (?, ?, ?, ?, ?)": items,
    "insert or ignore into item values (?, ?, ?, ?, ?)": items,
    "insert or replace into box values (?, ?, ?)": (boxes, st.sampled_from(["x", "X", "y"]), maybe),
    "insert into item select id + 4, kind, box, weight, n + ? from item where id <= 4": (small,),
    "insert or ignore into word values (?, ?, ?)": (ids, letters, st.sampled_from([0.25, 3.0, 0.0, -0.0])),
    "insert or replace into word select id, kind, n from item where n < ?": (small,),
    "update item set n = n + 1 where n < ?": (small,),
    "update item set kind = ?, box = ? where id < ?": (st.sampled_from("ab"), maybe, ids),
    "update item set weight = null where id > ?": (ids,),
    "update item set weight = ? where n < ?": (weights, small),
    "update item set weight = -weight where kind = ?": (st.sampled_from("ab"),),
    "update item set id = id + ? where id < 4": (st.integers(0, 9),),
    "update box set size = ?, place = ? where id = ?": (maybe, st.sampled_from("xYz"), boxes),
    "delete from item where id = ?": (ids,),
    "delete from item where n > ?": (small,),
    "delete from item where box in (select id from box where size > ?)": (small,),
    "delete from word where spelled = ?": (letters,),
    "delete from box where id = ?": (boxes,),
}
statements = st.sampled_from(list(STATEMENTS)).flatmap(
    lambda text: st.tuples(st.just(text), st.tuples(*STATEMENTS[text]))
)
control = st.sampled_from(["begin", "commit", "rollback", "savepoint s", "rollback to s"])
steps = st.lists(statements | control, min_size=1, max_size=12)


def shown(rows: Any) -> list[str]:
    return sorted(map(repr, rows))


def check(con: Any, bodies: dict[str, str]) -> None:
    for name, body in bodies.items():
        assert shown(con.execute(f"select * from {name}").fetchall()) == shown(
            con.execute(body).fetchall()
        ), f"{name}: {body}"


def run(con: Any, step: Any) -> None:
    try:
        if isinstance(step, str):
            con.execute(step)
        else:
            con.execute(step[0], step[1])
    except quereus_store.Error:
        pass


def prepare(con: Any, chosen: list[str], over: list[str]) -> dict[str, str]:
    con.executescript(TABLES)
    con.executemany(
        "insert into item values (?, ?, ?, ?, ?)",
        [
            (1, "a", 1, 0.5, 1),
            (2, "A", 1, None, 2),
            (3, "b", 2, 2.0, 3),
            (4, "a", None, 1.25, 2),
            (5, "b", 9, -3.0, 5),
        ],
    )
    con.executemany("insert into box values (?, ?, ?)", [(1, "x", 2), (2, "X", None), (3, "y", 1)])
    con.executemany(
        "insert into word values (?, ?, ?)", [(1, "p", 0.5), (1, "q", 1.5), (3, "p", 2.0), (5, "r", 0.1)]
    )
    bodies = {}
    for number, body in enumerate([*chosen, *over]):
        con.execute(f"create materialized view v{number} as {body}")
        bodies[f"v{number}"] = body
    check(con, bodies)
    return bodies


QUIET = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@QUIET
@given(
    chosen=st.lists(st.sampled_from(BODIES), min_size=1, max_size=4, unique=True),
    over=st.lists(st.sampled_from(OVER_VIEWS[:2]), max_size=1),
    steps=steps,
)
def test_views_equal_their_bodies_in_memory(chosen: list[str], over: list[str], steps: list[Any]) -> None:
    con = quereus_store.connect(":memory:")
    bodies = prepare(con, chosen, over)
    for step in steps:
        run(con, step)
        check(con, bodies)
    con.close()


@settings(QUIET, max_examples=12)
@given(chosen=st.lists(st.sampled_from(BODIES), min_size=1, max_size=4, unique=True), steps=steps)
@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_views_equal_their_bodies_in_files(backend: str, chosen: list[str], steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "db"))
        con = quereus_store.connect(path, backend=backend)
        bodies = prepare(con, chosen, [])
        for number, step in enumerate(steps):
            run(con, step)
            check(con, bodies)
            if number == len(steps) // 2:
                con.close()
                con = quereus_store.connect(path, backend=backend)
                check(con, bodies)
        con.close()


@pytest.mark.parametrize("body", BODIES)
def test_every_body_by_itself(body: str) -> None:
    con = quereus_store.connect(":memory:")
    bodies = prepare(con, [body], [])
    for statement in (
        "insert into item values (6, 'b', 1, 0.5, 4), (7, 'cc', 3, null, 0)",
        "update item set n = n + 1 where kind = 'a'",
        "update item set box = 2 where id in (1, 5)",
        "update box set size = 5, place = 'Q' where id = 2",
        "delete from box where id = 1",
        "insert into box values (1, 'y', 4), (9, 'z', 3)",
        "update item set id = id + 10 where id < 3",
        "delete from item where n > 3",
        "delete from item",
        "insert into item values (1, 'a', 1, 1.0, 1)",
    ):
        con.execute(statement)
        check(con, bodies)
