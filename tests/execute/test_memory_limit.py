"""The option ``memory_limit``: the same rows in the same order, with temporary files instead of memory."""

from __future__ import annotations

import gc
import marshal
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.execute.spilling import files
from quereus_store.execute.spilling.sizes import parse_size, rows_size
from tests.differential.choices import Choices
from tests.differential.extended import ExtendedQueries
from tests.differential.queries import Queries
from tests.differential.worlds import open_world

ROWS = 2000
LONG = os.environ.get("QUEREUS_LONG") == "1"


class Files:
    """Counts the temporary files: how many there were, and how many are open."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.all: list[IO[bytes]] = []
        original = files.tempfile.TemporaryFile

        def temporary(**named: Any) -> IO[bytes]:
            file: IO[bytes] = original(**named)
            self.all.append(file)
            return file

        patch.setattr(files.tempfile, "TemporaryFile", temporary)

    @property
    def made(self) -> int:
        return len(self.all)

    @property
    def open(self) -> int:
        return sum(not file.closed for file in self.all)


@pytest.fixture
def spilled(monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files(monkeypatch)


@pytest.fixture
def con() -> Iterator[Connection]:
    with quereus_store.connect() as connection:
        connection.execute("create table t (id integer primary key, grp integer, word text collate nocase)")
        words = ["Ann", "ann", "Bo", "BO", "cy", ""]
        rows = [(n, (n * 7919) % 401, words[n % 6] + str(n % 50)) for n in range(ROWS)]
        connection.executemany("insert into t values (?, ?, ?)", rows)
        connection.execute("create table few (grp integer primary key, name text)")
        connection.executemany("insert into few values (?, ?)", [(n, f"g{n}") for n in range(0, 401, 3)])
        yield connection


QUERIES = {
    "sort": "select word, grp from t order by word desc, grp",
    "sort by an expression": "select id from t order by grp % 10, -id",
    "top": "select id from t order by word, id limit 5000 offset 100",
    "distinct": "select distinct word, grp % 50 from t",
    "distinct values": "select distinct grp from t",
    "union": "select word from t union select name from few",
    "groups with states": "select grp, count(*), sum(id), min(word), avg(id) from t group by grp",
    "groups with filters": "select word, max(id) filter (where grp > 200), count(*) from t group by word",
    "groups that keep values": "select grp, group_concat(word), count(distinct word) from t group by grp",
    "groups counted": "select word, count(*) from t group by word",
    "one group": "select count(*), sum(id), max(word) from t where grp > 5",
    "no rows": "select count(*), sum(id) from t where id < 0",
    "inner join": "select a.id, b.id from t a join t b on b.grp = a.grp + 1 where b.id < 500",
    "left join": "select t.id, name from t left join few on name = 'g' || t.grp and few.grp > 20",
    "right join": "select t.id, name from t right join few on name = 'g' || t.grp",
    "semi join": "select id from t where exists (select 1 from t u where u.grp = t.grp + 1)",
    "anti join": "select id from t"
    " where not exists (select 1 from t u where u.word = t.word and u.id > t.grp)",
    "full join": "select few.grp, b.id from few full join t b on b.grp = few.grp + 1 and b.id > 900",
    "full join of keys that may be null": "select a.id, b.id, l, r from (select id, nullif(grp, 7) as k"
    " from t) a"
    " full join (select id, nullif(id % 700, 8) as k from t) b on a.k = b.k exists left as l, exists"
    " right as r",
    "full join of nothing": "select a.id, b.id from t a full join (select * from t where id < 0) b using"
    " (id)",
    "join without an equality": "select a.id, b.id from few join t a on a.grp < few.grp and a.id < 900"
    " join t b on b.id = a.id + few.grp where few.grp < 30",
    "left join without an equality": "select few.grp, t.id from few left join t on t.grp > few.grp + 390",
    "full join without an equality": "select few.grp, t.id, word, l from few full join t"
    " on t.grp > few.grp + 390 and t.id <> few.grp exists left as l",
    "anti join without an equality": "select few.grp from few where not exists"
    " (select 1 from t where t.grp > few.grp + 390)",
    "cross join": "select few.grp, t.id from few cross join t where few.grp < 50",
    "lateral": "select few.grp, x.id, x.word from few join lateral"
    " (select id, word from t where t.grp > few.grp % 7 + 390 order by word limit 40) x on true",
    "intersect": "select word, grp from t intersect select word, grp + 1 from t",
    "intersect all": "select word, grp % 5 from t intersect all select word, grp % 7 from t where id % 3 = 0",
    "except": "select word, grp from t except select word, grp + 1 from t",
    "except all": "select grp from t except all select id from t",
    "diff": "select word, grp from t diff select word, grp + 1 from t",
    "flags of a union": "select grp from t union exists left as l, exists right as r select id from t",
    "flags of all": "select grp from t union all exists left as l, exists right as r select id from t",
    "flags of an intersection": "select word from t intersect exists right as r select word || '' from t",
    "flags of a difference": "select id from t except exists left as l, exists right as r select grp from t",
    "numbered rows": "select id, row_number() over (order by word, id desc) from t",
    "sums within partitions": "select id, sum(id) over (partition by grp order by id desc), word from t",
    "partitions without an order": "select id, count(*) over (partition by word), max(grp) over () from t",
    "windows of several kinds": "select id, lag(word, 2) over w, rank() over w,"
    " avg(id) over (partition by grp % 3 order by word, id rows between 5 preceding and 2 following)"
    " from t window w as (partition by grp % 300 order by word)",
    "large partitions": "select id, word, row_number() over w, rank() over w, dense_rank() over w,"
    " percent_rank() over w,"
    " cume_dist() over w, ntile(7) over w, count(*) over w, sum(id) over w, min(word) over w,"
    " first_value(id) over w,"
    " last_value(id) over w, lag(id) over w, lead(id, 3, -1) over w from t window w as (partition by id"
    " % 2 order by word)",
    "frames in large partitions": "select id, sum(grp) over (order by id rows unbounded preceding),"
    " avg(id) over (order by id rows between 3 preceding and 2 following exclude current row),"
    " last_value(word) over (order by id rows unbounded preceding), max(word) over (order by id rows 2"
    " preceding),"
    " count(*) filter (where grp > 200) over (order by id), nth_value(id, 2) over (order by id rows 1"
    " preceding),"
    " string_agg(grp, '-') over (order by id rows between 2 following and 3 following) from t",
    "all of a large partition": "select id, count(*) over (), sum(grp) over (partition by 1), avg(grp)"
    " over (order by id"
    " rows between unbounded preceding and unbounded following), last_value(id) over (), row_number()"
    " over () from t",
    "what large partitions have to hold": "select id, sum(id) over (order by grp range between 3"
    " preceding and current row),"
    " lag(nullif(grp, 5)) over (order by id), first_value(id) over (order by id rows between current row"
    " and unbounded following), lead(id, id) over (order by id) from t",
    "grouping sets": "select grp, word, count(*), sum(id), min(word), grouping(grp) from t"
    " group by grouping sets ((grp), (word), (grp, word), ())",
    "cube that keeps values": "select grp % 9 as g, id % 5 as h, group_concat(word), max(id) from t"
    " group by cube (1, 2)",
    "distinct in grouping sets": "select grp, id % 5, count(distinct word), count(*), sum(distinct id %"
    " 9) from t"
    " group by rollup (1, 2)",
    "distinct in one group": "select count(distinct id), sum(distinct grp), count(*), avg(distinct id %"
    " 7) from t",
    "distinct with a filter": "select grp % 20, count(distinct word) filter (where id > 500),"
    " max(distinct word),"
    " count(distinct grp) from t group by 1",
    "distinct beside values kept": "select grp % 20, count(distinct id), group_concat(distinct word)"
    " from t group by 1",
    "groups in order of the key": "select id, max(word), count(distinct grp) from t group by id",
    "a common table read twice": "with c as (select id, word from t where grp > 3)"
    " select a.id, b.word from c a join c b on a.id = b.id + 1",
    "all of it": "select a.word, count(distinct b.grp) from t a join t b on a.grp = b.grp + 1"
    " group by a.word order by 2",
}


FITTING = ("one group", "no rows", "full join of nothing", "anti join without an equality", "lateral")
"""What fits whatever the limit."""


@pytest.mark.parametrize("name", QUERIES)
def test_the_same_rows_in_the_same_order(con: Connection, spilled: Files, name: str) -> None:
    expected = con.execute(QUERIES[name]).fetchall()
    assert spilled.made == 0
    for limit in ("1", "'150 kB'"):
        con.execute(f"pragma memory_limit = {limit}")
        assert con.execute(QUERIES[name]).fetchall() == expected
    assert spilled.made > 0 or name in FITTING
    assert spilled.open == 0


@pytest.mark.parametrize("seed", range(2))
def test_random_queries(seed: int, spilled: Files) -> None:
    world = open_world(Choices(seed), None, counts=(40, 700), wide=True)
    con = world.connections["memory"]
    for number in range(120 if LONG else 25):
        queries = (Queries if number % 3 else ExtendedQueries)(Choices(1000 * seed + number))
        query = queries.query()
        con.execute("pragma memory_limit = off")
        expected = con.execute(query.quereus, query.parameters).fetchall()
        con.execute("pragma memory_limit = 1")
        assert con.execute(query.quereus, query.parameters).fetchall() == expected, query.quereus
    assert spilled.made > 3
    assert spilled.open == 0
    world.close()


@pytest.mark.parametrize("kind", ["join", "left join", "full join"])
def test_many_matches_are_written_once(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    written = 0
    put = files.SpillFile.put

    def counting(file: files.SpillFile, rows: list[Any]) -> tuple[int, int]:
        nonlocal written
        place = put(file, rows)
        written += place[1]
        return place

    monkeypatch.setattr(files.SpillFile, "put", counting)
    with quereus_store.connect() as con:
        con.executescript(
            "create table a (id integer primary key, k integer); create table b as select * from a"
        )
        con.executemany("insert into a values (?, ?)", [(n, n * 7 % 13) for n in range(700)])
        con.executemany("insert into b values (?, ?)", [(n, n * 5 % 11) for n in range(4000)])
        sql = f"select a.id, b.id from a {kind} b on a.k = b.k"
        expected = con.execute(sql).fetchall()
        assert written == 0
        con.execute("pragma memory_limit = 60000")
        assert con.execute(sql).fetchall() == expected
        both = len(
            marshal.dumps(con.execute("select 1, id, k from a union all select 1, id, k from b").fetchall())
        )
        assert len(expected) > 200_000
        assert both < written < 5 * both


def test_changes_read_through_files_too(con: Connection, spilled: Files) -> None:
    con.execute("pragma memory_limit = '10 kB'")
    con.execute("create table sums (grp integer primary key, n integer)")
    con.execute("insert into sums select grp, count(*) from t group by grp order by 2 desc")
    assert spilled.made > 0
    assert con.execute("select count(*), sum(n) from sums").fetchone() == (401, ROWS)


def test_files_go_when_a_statement_fails(con: Connection, spilled: Files) -> None:
    con.execute("pragma memory_limit = 1")
    con.create_function("fail_late", 1, lambda n: 1 / (n - ROWS + 1))
    with pytest.raises(quereus_store.Error):
        con.execute("select fail_late(id) from t order by 1").fetchall()
    assert spilled.made > 0
    assert spilled.open == 0


@pytest.mark.parametrize("way", ["close", "forget", "close connection"])
def test_files_go_with_a_cursor_that_is_not_read_to_the_end(
    con: Connection, spilled: Files, way: str
) -> None:
    con.execute("pragma memory_limit = 1")
    cursor = con.execute("select * from t order by word")
    cursor.fetchone()
    assert spilled.open == 1
    if way == "close":
        cursor.close()
    elif way == "close connection":
        con.close()
    del cursor
    gc.collect()
    assert spilled.open == 0


def test_no_name_in_the_temporary_folder(
    con: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name == "nt":
        pytest.skip("there a temporary file has a name until it is closed")
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path))
    con.execute("pragma memory_limit = 1")
    cursor = con.execute("select * from t order by word")
    cursor.fetchone()
    assert list(tmp_path.iterdir()) == []


LARGE = {
    40_000: {
        "sort": "select id * 7919 % 100003 as k, 'some text of row ' || id as v from big order by k",
        "groups": (
            "select 'some text of row ' || (id * 7919 % 20011) as v, count(*), sum(id) from big group by 1"
        ),
        "distinct": "select distinct 'some text of row ' || (id * 7919 % 100003) as v from big",
        "one group": "select count(*), sum(id), max('some text of row ' || id) from big",
        "left join": (
            "select a.id, v from big a left join (select id, 'some text of row ' || id as v from big) b"
            " on b.id = a.id + 1 where a.id % 2 = 0"
        ),
    },
    16_000: {
        "join without an equality": (
            "select count(*), max(b.v) from (select id from big where id < 3) a cross join"
            " (select id, 'some text of row ' || id as v from big) b where a.id < b.id"
        ),
        "lateral": (
            "select count(*), max(x.v) from (select id from big where id < 1500) a cross join lateral"
            " (select 'some text of row ' || b.id as v from big b where b.id between a.id and a.id + 20) x"
        ),
        "full join": (
            "select a.id, v from big a full join (select id + 20000 as id, 'some text of row ' || id as v"
            " from big) b on b.id = a.id"
        ),
        "intersect": (
            "select 'some text of row ' || id as v from big intersect select 'some text of row ' || (id *"
            " 2) from big"
        ),
        "except": (
            "select 'some text of row ' || id as v from big except select 'some text of row ' || (id * 2)"
            " from big"
        ),
        "diff": (
            "select 'some text of row ' || id as v from big diff select 'some text of row ' || (id * 2)"
            " from big"
        ),
        "intersect all": "select id % 20000 from big intersect all select id % 30000 from big",
        "flags of a union": "select id from big union exists left as l, exists right as r select id"
        " * 2 from big",
        "windows within partitions": (
            "select id, 'some text of row ' || id as v, sum(id) over (partition by id % 1000 order by id"
            " desc) from big"
        ),
        "windows of small partitions": (
            "select id, rank() over w, lag(v) over w from (select id, 'some text of row ' || id as v from"
            " big) window w as (partition by id % 1500 order by v)"
        ),
        "windows over one partition": (
            "select id, 'some text of row ' || id as v, row_number() over w, sum(id) over w, lag(id, 2)"
            " over w, rank() over w from big window w as (order by id desc)"
        ),
        "grouping sets": "select id % 20011, id % 7, count(*), sum(id) from big group by grouping"
        " sets ((1), (2))",
        "distinct in grouping sets": (
            "select id % 3, count(distinct 'some text of row ' || id), count(*) from big group by rollup (1)"
        ),
        "distinct in one group": "select count(distinct 'some text of row ' || id), count(*) from big",
        "a common table read twice": (
            "with c as (select id, 'some text of row ' || id as v from big) select count(*), max(a.v)"
            " from c a where exists (select 1 from c b where b.id = a.id + 1)"
        ),
    },
}
"""Queries over so many rows, each of which holds more than twice its limit without one."""

LIMITS = {40_000: 1_500_000, 16_000: 1_000_000}


@pytest.mark.parametrize(
    ("rows", "name"), [(rows, name) for rows, queries in LARGE.items() for name in queries]
)
def test_memory_stays_near_the_limit(rows: int, name: str) -> None:
    limit, sql = LIMITS[rows], LARGE[rows][name]
    with quereus_store.connect() as con:
        con.execute("create table big (id integer primary key)")
        con.executemany("insert into big values (?)", [(n,) for n in range(rows)])
        con.execute(f"pragma memory_limit = {limit}")
        assert _peak(con, sql) < 2 * limit
        con.execute("pragma memory_limit = off")
        assert _peak(con, sql) > 2 * limit


def _peak(con: Connection, sql: str) -> int:
    con.execute(sql).close()  # So the statement is compiled.
    gc.collect()
    tracemalloc.start()
    try:
        for _ in con.execute(sql).fetch_batches():
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_option(con: Connection) -> None:
    assert con.execute("pragma memory_limit").fetchall() == [("memory_limit", None)]
    con.execute("pragma memory_limit = '64 MB'")
    assert con.execute("pragma memory_limit").fetchall() == [("memory_limit", 64_000_000)]
    con.execute("pragma memory_limit = off")
    assert con.execute("pragma memory_limit").fetchall() == [("memory_limit", None)]
    with pytest.raises(quereus_store.DatabaseError, match="Unknown pragma: memory_limit") as caught:
        con.execute("pragma memory_limit = 'much'")
    assert "'64 MB'" in str(caught.value.__cause__)


def test_without_the_option_code_is_as_always(con: Connection) -> None:
    [*code] = con.execute("explain code select grp, count(*) from t group by grp order by 2")
    assert "share" not in str(code)
    con.execute("pragma memory_limit = 50000")
    assert "share = 25000" in str(
        con.execute("explain code select grp, count(*) from t group by grp order by 2").fetchall()
    )


def test_sizes() -> None:
    assert [parse_size(text) for text in ("10", "2 kB", "1.5MB", "1 GiB", "off")] == [
        10,
        2000,
        1_500_000,
        2**30,
        0,
    ]
    for wrong in ("MB", "-1", -1, True, float("inf"), [1]):
        with pytest.raises(ValueError, match="a size is"):
            parse_size(wrong)
    small, large = rows_size([(1, [1, 2])]), rows_size([(1, [1, {"text": "x" * 1000}])])
    assert large > small + 1000
