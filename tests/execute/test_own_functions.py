"""Functions of the program within queries: their annotations declare what the planner goes by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.functions.registry import ScalarFunction, TableFunction
from quereus_store.types.logical import INTEGER, JSON, REAL, TEXT


@pytest.fixture
def con() -> Iterator[Connection]:
    with quereus_store.connect() as connection:
        connection.execute("create table t (id integer primary key, word text)")
        connection.executemany("insert into t values (?, ?)", [(n, f"{n % 7}") for n in range(1, 1001)])
        yield connection


def test_the_annotation_of_a_scalar_function_declares_its_type(con: Connection) -> None:
    """A number that is compared with a text makes a number of it; ANY does not."""

    def half(value: int) -> float:
        return value / 2

    con.create_function("half", 1, half)
    con.create_function("bare", 1, lambda value: value / 2)
    found = con.execute("select half(id) as h, half(id) = '5', bare(id) = '5' from t where id = 10")
    assert found.fetchone() == (5.0, True, False)
    function = con.database.functions.find("half", 1)
    assert isinstance(function, ScalarFunction)
    assert function.returns is REAL


class Longest:
    """Also slides over windows."""

    made = 0

    def __init__(self) -> None:
        Longest.made += 1
        self.texts: list[str] = []

    def step(self, text: str) -> None:
        self.texts.append(text)

    def inverse(self, text: str) -> None:
        self.texts.remove(text)

    def value(self) -> int:
        return max(map(len, self.texts), default=0)

    finalize = value


def test_an_aggregate_of_a_class_slides_where_it_can_take_rows_out(con: Connection) -> None:
    con.create_aggregate("longest", 1, Longest)
    Longest.made = 0
    window = "order by id rows between 2 preceding and current row"
    rows = con.execute(f"select longest(word || id) over ({window}) from t").fetchall()
    assert rows[-1] == (5,)
    assert Longest.made < 5
    assert con.execute("select longest(word || id), longest(word) = '1' from t").fetchone() == (5, True)


def test_an_aggregate_of_a_class_without_inverse_is_asked_once(con: Connection) -> None:
    asked = []

    class Count:
        value = None

        def __init__(self) -> None:
            self.rows = 0

        def step(self, text: str) -> None:
            self.rows += 1

        def finalize(self) -> int:
            asked.append(self.rows)
            return self.rows

    con.create_aggregate("how_many", 1, Count)
    sql = "select word, how_many(word), how_many(distinct word) from t group by word order by word limit 2"
    assert con.execute(sql).fetchall() == [("0", 142, 1), ("1", 143, 1)]
    assert sorted(set(asked)) == [1, 142, 143]


class Point(NamedTuple):
    x: int
    label: str
    tags: dict[str, int]


def test_the_rows_of_a_table_function_declare_its_columns(con: Connection) -> None:
    def points(count: int, prefix: str = "p") -> Iterator[Point]:
        for number in range(count):
            yield Point(number, f"{prefix}{number}", {"n": number})

    con.database.create_table_function("points", points)
    function = con.database.functions.find("points", 1)
    assert isinstance(function, TableFunction)
    assert [(column.name, column.type) for column in function.columns] == [
        ("x", INTEGER),
        ("label", TEXT),
        ("tags", JSON),
    ]
    sql = "select label, tags ->> 'n' as n from points(3, 'q') where x > '0' order by x"
    assert con.execute(sql).fetchall() == [("q1", "1"), ("q2", "2")]
    joined = "select t.id, p.label from t join lateral points(t.id) p on p.x = t.id - 1 where t.id < 3"
    assert con.execute(joined).fetchall() == [(1, "p0"), (2, "p1")]


def test_names_take_their_types_from_annotated_tuples(con: Connection) -> None:
    def pairs() -> Iterator[tuple[int, str]]:
        yield 1, "one"

    con.database.create_table_function("pairs", pairs, columns=["number", "name"])
    assert con.execute("select name from pairs() where number = '1'").fetchall() == [("one",)]


def test_rows_without_names_are_refused(con: Connection) -> None:
    def pairs() -> Iterator[tuple[int, str]]:
        yield 1, "one"

    with pytest.raises(quereus_store.Error, match="must declare its columns"):
        con.database.create_table_function("pairs", pairs)


class Fussy:
    """Fails at 3, and at the end when it has seen a 4."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def step(self, value: int) -> None:
        if value == 3:
            raise ValueError("no threes")
        self.seen.add(value)

    def finalize(self) -> int:
        if 4 in self.seen:
            raise ValueError("no fours")
        return len(self.seen)


@pytest.mark.parametrize(("first", "message"), [(3, "no threes"), (4, "no fours")])
@pytest.mark.parametrize("over", ["", " over ()", " over (order by id rows 1 preceding)"])
@pytest.mark.parametrize("memory_limit", [0, 20_000])
def test_a_failing_aggregate_is_told_with_its_place(
    con: Connection, first: int, message: str, over: str, memory_limit: int
) -> None:
    con.create_aggregate("fussy", 1, Fussy)
    con.execute(f"pragma memory_limit = {memory_limit}")
    with pytest.raises(quereus_store.Error, match=f"Function fussy failed: {message}") as failure:
        con.execute(f"select 1,\n  fussy(id){over} from t where id >= {first}").fetchall()
    assert "(at line 2, column 3)" in str(failure.value)
