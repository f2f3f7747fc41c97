"""Columns of all the types that SQLite does not have, and comparisons between different types.

Dates, durations that are equal by meaning, documents, blobs, exact integers beyond doubles,
text that ignores trailing blanks: each has keys of its own in indexes, hash tables and sorts,
which must say the same as the comparison operators do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import quereus_store
from tests.differential.choices import Choices
from tests.differential.comparing import SPANS
from tests.differential.expressions import PLAIN_TYPES, Expr, same
from tests.differential.extended import ExtendedExpressions, ExtendedQueries
from tests.differential.query_parts import Source
from tests.differential.worlds import Column, Table, World, rows_of, sqlite_connection

TYPES = {
    "date": "date",
    "time": "time",
    "datetime": "datetime",
    "timespan": "timespan",
    "json": "json",
    "blob": "blob",
    "numeric": "numeric",
    "big": "integer",
    "rtrim": "text collate rtrim",
    "any": "any",
    "nocase": "text collate nocase",
    "real": "real",
    "int": "integer",
    "text": "text",
    "bool": "boolean",
}
EXOTIC = ("date", "time", "datetime", "timespan", "json", "blob", "numeric", "big", "rtrim", "any", "nocase")

VALUES: dict[str, tuple[object, ...]] = {
    "date": ("2024-01-31", "2024-02-01", "1999-12-31"),
    "time": ("00:00:00", "12:30:00", "23:59:59.5"),
    "datetime": ("2024-01-31T00:00:00", "2024-01-31T12:00:00", "1999-12-31T23:59:59.999"),
    "timespan": tuple(SPANS),
    "json": (
        [1, 2],
        [1.0, 2],
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        [],
        {},
        1,
        1.0,
        True,
        '"a"',
        False,
        [None],
    ),
    "blob": (b"", b"\x00", b"\x00\x01", b"\xff", b"a"),
    "numeric": (1, 1.0, 1.5, -2, 0, 2**53 + 1, float(2**53), 10**30, 1e30),
    "big": (2**53, 2**53 + 1, -(2**63), 2**63, 10**30, 0, 1),
    "rtrim": ("a", "a ", "a  ", "", " ", "b", "A"),
    "any": (
        1,
        1.0,
        True,
        False,
        0,
        "1",
        "a",
        "PT1H",
        "PT60M",
        b"a",
        [1],
        [1.0],
        {"a": 1},
        2**53 + 1,
        2.5,
        "",
    ),
    "nocase": ("a", "A", "b", "B", "", "ä", "Ä"),
}
LITERALS: dict[str, tuple[str, ...]] = {
    "date": ("date('2024-01-31')", "date('1999-12-31')"),
    "time": ("time('12:30')", "time('00:00:00')"),
    "datetime": ("datetime('2024-01-31T12:00:00')", "datetime('1999-12-31T23:59:59.999')"),
    "timespan": ("timespan('PT1H')", "timespan('PT60M')", "timespan('P1M')", "timespan('P1D')"),
    "json": ("json('[1,2]')", "json('1')", "json('true')", 'json(\'{"a":1,"b":2}\')', "json('\"a\"')"),
    "blob": ("x''", "x'00'", "x'61'"),
    "numeric": ("1", "1.5", "9007199254740993", "9007199254740992.0", "1e30"),
    "big": ("9007199254740993", "1000000000000000000000000000000", "0", "1"),
    "rtrim": ("'a'", "'a '", "''"),
    "any": ("cast(1 as any)", "cast('a' as any)", "cast('PT1H' as any)", "cast(x'61' as any)"),
    "nocase": ("'a'", "'B'", "'ä'"),
}


def _columns(kinds: str) -> tuple[Column, ...]:
    """Columns of these kinds; an exclamation mark makes one NOT NULL."""
    return tuple(Column(f"{kind.strip('!')}_", kind.strip("!"), "!" not in kind) for kind in kinds.split())


TABLES = (
    Table(
        "e1", (Column("id", "int", False), *_columns(" ".join([*EXOTIC, "text", "real", "bool"]))), ("id",)
    ),
    Table("e2", _columns("timespan! json rtrim! date any"), ("timespan_", "rtrim_ desc")),
    Table("e3", _columns("json! numeric datetime nocase int"), ("json_",)),
    Table("e4", _columns("any! big! blob time bool"), ("any_ desc", "big_")),
    Table("e5", _columns("numeric! date! timespan text"), ("numeric_", "date_")),
)
INDEXES = (
    *(f"create index x{number} on e1 ({kind}_)" for number, kind in enumerate(EXOTIC)),
    "create index y1 on e1 (timespan_ desc, numeric_)",
    "create index y2 on e1 (json_, any_ desc)",
    "create index y3 on e2 (json_)",
    "create index y4 on e2 (any_, date_)",
    "create index y5 on e3 (numeric_ desc, nocase_)",
    "create index y6 on e4 (big_)",
    "create index y7 on e4 (blob_ desc)",
    "create index y8 on e5 (timespan_)",
    "create index y9 on e1 (rtrim_ desc, date_) where numeric_ > 0",
)


class ExoticExpressions(ExtendedExpressions):
    """Comparisons between anything and anything."""

    def leaf(self, kind: str) -> Expr:
        if kind in EXOTIC:
            columns = [expr for expr in self.pool if expr.type == kind]
            if columns and not self.choices.chance(30):
                return self.choices.one_of(columns)
            if self.choices.chance(15):
                value = self.choices.one_of(VALUES[kind])
                name = self.parameters.add(value)
                return Expr(name, name, kind)
            literal = self.choices.one_of(LITERALS[kind])
            return Expr(literal, literal, kind)
        return super().leaf(kind)

    def constant(self, kind: str) -> Expr:
        if kind in EXOTIC:
            literal = self.choices.one_of(LITERALS[kind])
            return Expr(literal, literal, kind)
        return super().constant(kind)

    def make(self, kind: str, depth: int) -> Expr:
        if kind in EXOTIC:
            if depth > 0 and self.choices.chance(10):
                form = self.choices.one_of(("coalesce({}, {})", "nullif({}, {})", "iif({}, {}, {})"))
                parts = [self.leaf(kind), self.leaf(kind)]
                if form.startswith("iif"):
                    parts.insert(0, super().make("bool", depth - 1))
                return same(form, kind, *parts)
            return self.leaf(kind)
        return super().make(kind, depth)

    def _operands(self, depth: int) -> tuple[str, Expr, Expr]:
        kinds = (*EXOTIC, *PLAIN_TYPES)
        kind = self.choices.one_of(kinds)
        other = self.choices.one_of(kinds) if self.choices.chance(35) else kind
        if {kind, other} == {"nocase", "rtrim"}:
            other = kind
        return kind, self.make(kind, min(depth, 1)), self.make(other, min(depth, 1))

    def nocase_operand(self) -> Expr:
        return self.leaf("nocase")


class ExoticQueries(ExtendedQueries):
    """Queries over these tables."""

    expressions = ExoticExpressions

    def __init__(self, choices: Choices, size: int = 2) -> None:
        super().__init__(choices, TABLES, size)

    def _types(self, types: Sequence[str] | None) -> tuple[str, ...]:
        if types is not None:
            return tuple(types)
        kinds = (*EXOTIC, "int", "text", "bool")
        return tuple(self.choices.one_of(kinds) for _ in range(1 + self.choices.below(3)))

    def _item(self, maker: Any, kind: str, depth: int) -> Expr:
        return maker.make(kind, min(depth, 1)) if kind in EXOTIC else super()._item(maker, kind, depth)

    def _aggregate(self, kind: str, maker: Any, depth: int) -> Expr:
        if kind not in EXOTIC:
            return super()._aggregate(kind, maker, depth)
        columns = [expr for expr in maker.pool if expr.column and expr.type == kind]
        if not columns:
            literal = self.choices.one_of(LITERALS[kind])
            return Expr(literal, literal, kind)
        function = self.choices.one_of(("min", "max", "count"))
        if function == "count":
            return same("count(distinct {})", "int", self.choices.one_of(columns))
        return same(f"{function}({{}})", kind, self.choices.one_of(columns))

    def _recursion(self, name: str) -> tuple[tuple[str, ...], str, str]:
        text = f"select 1 union select {name}_0 + 1 from {name} where {name}_0 < 4"
        return ("int",), text, text

    def _join_condition(self, left: Source, right: Source, depth: int, outer: Sequence[Expr]) -> Expr:
        clash = ({"nocase", "rtrim"}, {"json", "any"})
        pairs = [
            (a, b)
            for a in left.columns
            for b in right.columns
            if a.type == b.type or (self.choices.chance(10) and {a.type, b.type} not in clash)
        ]
        if not pairs:
            return super()._join_condition(left, right, depth, outer)
        operator = self.choices.one_of(("=", "=", "=", "is not distinct from", "<="))
        return same(f"{{}} {operator} {{}}", "bool", *self.choices.one_of(pairs))

    def _using(self, left: Source, right: Source, kind: str) -> Source | None:
        return None


def open_world(choices: Choices, folder: Path | None, counts: Sequence[int] = (0, 5, 12, 30)) -> World:
    """A random database of these tables."""
    world = World(sqlite_connection())
    world.connections["memory"] = quereus_store.connect(":memory:")
    world.connections["memory, indexes"] = quereus_store.connect(":memory:")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for backend in ("lmdb", "leveldb"):
            path = str(folder / f"{backend}.qdb")
            world.connections[backend] = quereus_store.connect(path, backend=backend, synchronous="off")
    world.indexes = tuple(index for index in INDEXES if choices.chance(55))
    for table in TABLES:
        rows = world.rows[table.name] = rows_of(table, choices, choices.one_of(counts), values=VALUES)
        for connection in world.connections.values():
            connection.execute(table.create("quereus", TYPES))
            marks = ", ".join("?" * len(table.columns))
            for row in rows:
                connection.execute(f"insert or ignore into {table.name} values ({marks})", row)
    for label, connection in world.connections.items():
        if label != "memory":
            for index in world.indexes:
                connection.execute(index)
    return world
