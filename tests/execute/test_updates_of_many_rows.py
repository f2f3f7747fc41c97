"""Updates of many rows: reals that overflow, keys that move, indexes that are read afterwards."""

import pytest

import quereus_store
from quereus_store.errors import IntegrityError

ROWS = 5_000
"""More than the store updates at once."""


@pytest.fixture(params=["memory", "lmdb"])
def con(request, tmp_path):
    if request.param == "memory":
        con = quereus_store.connect(":memory:")
    else:
        con = quereus_store.connect(str(tmp_path / "t.qdb"), backend="lmdb")
    con.execute("create table t (id integer primary key, code text not null, price real null, unique (code))")
    con.execute("create index t_price on t (price) where price > 10")
    rows = [(number, f"c{number * 7919 % ROWS:05d}", number / 4) for number in range(ROWS)]
    con.executemany("insert into t values (?, ?, ?)", rows)
    yield con
    con.close()


def by_code(con, start):
    return con.execute("select code, price from t where code >= ? order by code limit 3", (start,)).fetchall()


def test_an_index_that_keeps_its_keys_gives_the_new_rows(con):
    before = by_code(con, "c01000")
    con.execute("begin")
    con.execute("update t set price = price + 1.0 where id % 3 > 0")
    changed = by_code(con, "c01000")
    con.execute("update t set price = price + 1.0")
    assert [price for _, price in by_code(con, "c01000")] == [price + 1.0 for _, price in changed]
    con.execute("insert into t values (-1, 'c010005', 0.0)")
    assert by_code(con, "c01000")[1] == ("c010005", 0.0)
    con.execute("rollback")
    assert by_code(con, "c01000") == before


def test_a_snapshot_keeps_its_rows(con):
    first = con.execute("select code, price from t where code >= 'c00000' order by code")
    first.fetchone()
    con.execute("update t set price = 0.0")
    rest = first.fetchall()
    assert len(rest) == ROWS - 1
    assert 0.0 not in [price for _, price in rest]


def test_keys_that_move_into_each_other_are_judged_row_by_row(con):
    with pytest.raises(IntegrityError):
        con.execute("update t set id = id + 1")
    assert con.execute("select count(*), min(id), max(id) from t").fetchone() == (ROWS, 0, ROWS - 1)
    con.execute("update t set id = id - 1")
    assert con.execute("select count(*), min(id), max(id) from t").fetchone() == (ROWS, -1, ROWS - 2)


def test_arithmetic_that_overflows_is_null(con):
    con.execute("update t set price = price * 1e308 where id >= 10")
    assert con.execute("select count(*) from t where price is null").fetchone() == (ROWS - 10,)
    con.execute("update t set price = price - price * 2.0 where id < 10")
    assert con.execute("select price from t where id = 4").fetchone() == (-1.0,)


def test_integers_among_reals_become_reals(con):
    con.executemany("insert into t values (?, ?, ?)", [(-1, "a", 1), (-2, "b", 2.5), (-3, "c", 10**400)])
    con.executemany("insert into t values (?, ?, ?)", [(-4, "d", True), (-5, "e", None), (-6, "f", "1.5")])
    rows = con.execute("select price from t where id < 0 order by id desc").fetchall()
    assert [repr(price) for (price,) in rows] == ["1.0", "2.5", "inf", "1.0", "None", "1.5"]


def test_keys_move_where_a_partial_index_has_none_of_the_rows(con):
    con.execute("create index t_negative on t (price desc) where price < 0")
    con.execute("begin")
    con.execute("update t set id = id + 10000 where price <= 10")
    con.execute("update t set price = 0.0 - price where id = 10040")
    con.execute("update t set id = id + 10000, code = code || 'x'")
    assert con.execute("select id, price from t where price < 0").fetchall() == [(20040, -10.0)]
    assert con.execute("select id, code from t where code = 'c04996x'").fetchall() == [(14284, "c04996x")]
    con.execute("update t set price = null")
    con.execute("update t set id = 0 - id")
    assert con.execute("select count(*) from t where price < 0 or price > 10").fetchone() == (0,)
    assert con.execute("select count(*), max(id) from t").fetchone() == (ROWS, -10041)
    con.execute("rollback")
    assert con.execute("select count(*) from t where price > 10").fetchone() == (ROWS - 41,)
