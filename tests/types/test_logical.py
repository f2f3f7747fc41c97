"""Type names and registered types (types-and-values, sections 2 and 18)."""

import copy

import pytest

import quereus_store
from quereus_store.errors import Error
from quereus_store.types import logical
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    DATE,
    INTEGER,
    JSON,
    NUMERIC,
    REAL,
    TEXT,
    TIMESPAN,
    TIMESTAMP,
    LogicalType,
    PhysicalType,
    TypeRegistry,
    physical_type_of,
    type_from_name,
    type_of_value,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("integer", INTEGER),
        ("BigInt", INTEGER),
        ("unsigned big int", INTEGER),
        ("POINT", INTEGER),
        ("double precision", REAL),
        ("float", REAL),
        ("DECIMAL(9,2)", NUMERIC),
        ("VARCHAR(5)", TEXT),
        ("NVARCHAR(9)", TEXT),
        ("string", TEXT),
        ("bool", BOOLEAN),
        ("VARBINARY", BLOB),
        ("interval", TIMESPAN),
        ("DATE(3)", DATE),
        ("JSON(1)", JSON),
        ("TIMESTAMP(6)", TIMESTAMP),
        ("widget", ANY),
        ("", ANY),
        (None, ANY),
    ],
)
def test_name_lookup(name, expected):
    assert type_from_name(name) is expected


def test_only_some_types_are_numeric_or_textual():
    assert {t for t in logical.BUILT_IN_TYPES if t.is_numeric} == {INTEGER, REAL, NUMERIC}
    assert {t for t in logical.BUILT_IN_TYPES if t.is_textual} == {TEXT}
    assert {t.name for t in logical.BUILT_IN_TYPES if t.is_temporal} == {
        "DATE",
        "TIME",
        "DATETIME",
        "TIMESPAN",
        "TIMESTAMP",
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, logical.NULL), (True, BOOLEAN), (1, INTEGER), (4.0, REAL), ("", TEXT), (b"", BLOB), ([], JSON)],
)
def test_type_of_a_literal_or_parameter(value, expected):
    assert type_of_value(value) is expected
    assert physical_type_of(value) is expected.physical


def test_a_type_is_one_object_even_when_copied():
    assert copy.deepcopy(INTEGER) is INTEGER
    assert copy.copy(JSON) is JSON


def test_registered_types_are_found_by_exact_name():
    registry = TypeRegistry()
    point = LogicalType("POINT", PhysicalType.TEXT)
    registry.register(point)
    assert registry.resolve("point") is point
    assert registry.resolve("Point(2)") is point
    assert registry.resolve("pointer") is INTEGER
    assert list(registry.registered()) == ["POINT"]


@pytest.mark.parametrize("name", ["INTEGER", "varchar", "null", " "])
def test_built_in_names_cannot_be_taken(name):
    with pytest.raises(Error, match="registerType"):
        TypeRegistry().register(LogicalType(name, PhysicalType.TEXT))


def numbers_of(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.removeprefix("v").split(".")))


def test_columns_of_a_registered_type_check_and_order_by_it():
    def parse(value):
        if isinstance(value, str) and value.startswith("v"):
            return value
        raise ValueError("a version begins with v")

    def compare(one, other):
        return (numbers_of(one) > numbers_of(other)) - (numbers_of(one) < numbers_of(other))

    version = LogicalType("VERSION", PhysicalType.TEXT, parse=parse, compare=compare, key=numbers_of)
    with quereus_store.connect(":memory:") as con:
        con.database.register_type(version)
        con.execute("create table shipped (number version primary key, after version null)")
        con.executemany(
            "insert into shipped values (?, ?)", [("v1.10", "v1.9"), ("v1.9", None), ("v2.0", "v3")]
        )
        found = con.execute("select number from shipped order by number").fetchall()
        assert found == [("v1.9",), ("v1.10",), ("v2.0",)]
        assert con.execute("select number from shipped where number > after").fetchall() == [("v1.10",)]
        with pytest.raises(quereus_store.DataError, match="a version begins with v"):
            con.execute("insert into shipped values ('2.1', null)")
