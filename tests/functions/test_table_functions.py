"""Table functions by example."""

from __future__ import annotations

import re
from typing import Any

import pytest

from quereus_store.errors import Error
from quereus_store.functions.builtins import builtin_functions

from .calling import rows


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ((1, 4), [1, 2, 3, 4]),
        ((4, 1), []),
        ((None, 2), [0, 1, 2]),
        ((1.5, 4), [1.5, 2.5, 3.5]),
        ((1, 3.9), [1, 2, 3]),
        (("2", True), []),
        (("2", "3"), [2, 3]),
        (("x", 3), []),
        ((1, 10, 4), [1, 5, 9]),
        ((5, 1, -2), [5, 3, 1]),
        ((1, 5, 0), []),
        ((1, float("inf")), []),
    ],
)
def test_generate_series(arguments: tuple[Any, ...], values: list[Any]) -> None:
    assert [value for (value,) in rows("generate_series", *arguments)] == values


@pytest.mark.parametrize(
    ("text", "separator", "parts"),
    [("a,b", ",", [("a", 0), ("b", 1)]), ("ab", "", [("a", 0), ("b", 1)]), ("a", None, []), (5, ",", [])],
)
def test_split_string(text: Any, separator: Any, parts: list[Any]) -> None:
    assert rows("split_string", text, separator) == parts


def test_json_each_lists_members_by_name() -> None:
    assert rows("json_each", '{"b":[1],"a":true}') == [
        ("a", True, "true", True, 0, None, ".a", ""),
        ("b", "[1]", "array", None, 1, None, ".b", ""),
    ]


def test_json_each_of_scalars_and_null() -> None:
    assert rows("json_each", "5") == [(None, 5, "integer", 5, 0, None, "", "")]
    assert rows("json_each", None) == [(None, None, "null", None, 0, None, "", "")]


def test_the_start_path_knows_only_dots() -> None:
    source = '{"a":[[7],[8]],"x y":[9]}'
    assert rows("json_each", source, "$.a[1]") == []
    assert [row[1] for row in rows("json_each", source, "$.a.[1]")] == [8]
    assert [row[1] for row in rows("json_each", source, "$.x y")] == [9]
    assert [row[1] for row in rows("json_each", "[[1]]", "$[0]")] == [1]
    assert len(rows("json_each", source, 5)) == 2


def test_json_tree_walks_in_pre_order() -> None:
    assert rows("json_tree", '{"a":[1,{"b":null}]}') == [
        (None, '{"a":[1,{"b":null}]}', "object", None, 1, 0, "", ""),
        ("a", '[1,{"b":null}]', "array", None, 2, 1, ".a", ""),
        (0, 1, "integer", 1, 3, 2, ".a[0]", ".a"),
        (1, '{"b":null}', "object", None, 4, 2, ".a[1]", ".a"),
        ("b", None, "null", None, 5, 4, ".a[1].b", ".a[1]"),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("json_each", ("oops",), "Error: Invalid JSON provided to json_each"),
        ("json_tree", (b"1",), "Error: Invalid JSON provided to json_tree"),
        ("json_each", (), "Error: json_each requires 1 or 2 arguments (jsonSource, [rootPath])"),
        ("json_tree", ("1", "$", 3), "Error: json_tree requires 1 or 2 arguments (jsonSource, [rootPath])"),
    ],
)
def test_failures(name: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Error, match=re.escape(f"Table-valued function {name} failed: {message}")):
        rows(name, *arguments)


def test_rows_are_as_wide_as_their_declaration() -> None:
    for name, arguments in (
        ("generate_series", (1, 2)),
        ("split_string", ("a", ",")),
        ("json_each", ("[1]",)),
        ("json_tree", ("[1]",)),
    ):
        function = builtin_functions().find(name, len(arguments))
        assert function is not None
        assert {len(row) for row in rows(name, *arguments)} == {len(function.columns)}  # type: ignore[union-attr]
