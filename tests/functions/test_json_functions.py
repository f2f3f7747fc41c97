"""JSON functions, patches and the shape language, by example."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quereus_store.functions.json_patch import apply_patch
from quereus_store.functions.json_schema import matches_schema
from quereus_store.types.json import MISSING, render_json

from .calling import rows, scalar

CALLS = [
    ("json_valid", ('{"a":1}',), True),
    ("json_valid", ("{a:1}",), False),
    ("json_valid", (None,), False),
    ("json_valid", (b"1",), False),
    ("json_type", ('{"a":[1,2.5,null,true]}', "$.a"), "array"),
    ("json_type", ('{"a":[1,2.5,null,true]}', "$.a[1]"), "real"),
    ("json_type", ('{"a":[1,2.5,null,true]}', "$.a[2]"), "null"),
    ("json_type", ('{"a":[1,2.5,null,true]}', "$.a[3]"), "true"),
    ("json_type", ("[1]", "$.x"), None),
    ("json_type", ("nonsense",), None),
    ("json_type", (None,), "null"),
    ("json_type", ("1", 5), "null"),
    ("json_extract", ('{"a":{"b":7}}', "$.a.b"), 7),
    ("json_extract", ('{"a":1}', "$.x", "$.a"), 1),
    ("json_extract", ('{"a":null,"b":2}', "$.a", "$.b"), None),
    ("json_extract", ('{"a":1}', 5, "$.a"), None),
    ("json_extract", ('{"a b":1}', '$."a b"'), 1),
    ("json_extract", ('{"a b":1}', "a b"), None),
    ("json_extract", ("[[1]]", "[0]"), [1]),
    ("json_extract", ("[1]", "$[-1]"), None),
    ("json_array_length", ("[1,[2],3]",), 3),
    ("json_array_length", ("[1,[2],3]", "$[1]"), 1),
    ("json_array_length", ("{}",), 0),
    ("json_array_length", ("oops",), None),
    ("json_array_length", (None,), 0),
    ("json_quote", ('a"b',), '"a\\"b"'),
    ("json_quote", (None,), "null"),
    ("json_quote", (2**70,), str(2**70)),
    ("json_quote", (b"x",), None),
    ("json_array", (1, "2", None, [3], b"x"), [1, "2", None, [3], None]),
    ("json_object", ("a", 1, "a", 2), {"a": 2}),
    ("json_object", (), {}),
    ("json_object", ("a",), None),
    ("json_object", (42, "v"), None),
    ("json_insert", ('{"a":1}', "$.a", 9, "$.b", 2), {"a": 1, "b": 2}),
    ("json_insert", ("[1]", "$[1]", 2, "$[5]", 3), [1, 2]),
    ("json_replace", ('{"a":1}', "$.a", 9, "$.b", 2), {"a": 9}),
    ("json_replace", ("[1]", "$", 5), 5),
    ("json_set", ('{"p":{}}', "$.p.q", 1), {"p": {"q": 1}}),
    ("json_set", ('{"p":{}}', "$.p.q.r", 1), {"p": {}}),
    ("json_set", ("[1]", "$[3]", 4), [1, None, None, 4]),
    ("json_set", ("{}", "bad", 1, "$.ok", 2), {"ok": 2}),
    ("json_set", ("{}", "$.a"), None),
    ("json_set", ("{}", 1, 2), None),
    ("json_set", ("{}",), None),
    ("json_remove", ('{"a":1,"b":[1,2]}', "$.a", "$.b[0]", "$.zz", "$"), {"b": [2]}),
    ("json_remove", ("[1]",), [1]),
    ("json_remove", ("[1]", 5), None),
    ("json_patch", ("[1]", '[{"op":"add","path":"/-","value":2}]'), [1, 2]),
    ("json_patch", ("[1]", '[{"op":"test","path":"/0","value":2}]'), None),
    ("json_patch", ("[1]", "{}"), None),
    ("json_schema", ('{"a":1}', "{ a: number }"), True),
    ("json_schema", ("oops", "any"), False),
]


@pytest.mark.parametrize(("name", "arguments", "value"), CALLS)
def test_value(name: str, arguments: tuple[Any, ...], value: Any) -> None:
    result = scalar(name, *arguments)
    assert (type(result), result) == (type(value), value)


def test_changes_leave_the_document_alone() -> None:
    document = {"a": [1, {"b": 2}], "c": {}}
    before = render_json(document)
    scalar("json_set", document, "$.a[1].b", 3, "$.c.d", 4)
    scalar("json_remove", document, "$.a[0]")
    scalar("json_patch", document, '[{"op":"move","from":"/a/1","path":"/c/x"}]')
    assert render_json(document) == before


PATCHES: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ([1, 3], [{"op": "add", "path": "/1", "value": 2}], [1, 2, 3]),
    ([1], [{"op": "add", "path": "/3", "value": 2}], MISSING),
    ({"a": 1}, [{"op": "remove", "path": "/x"}], MISSING),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": 5}], 5),
    ({"a": 1}, [{"op": "replace", "path": "/x", "value": 5}], MISSING),
    ({"a": 1, "b": 2}, [{"op": "move", "from": "/a", "path": "/c"}], {"b": 2, "c": 1}),
    ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    ({"x/y": {"~": 1}}, [{"op": "test", "path": "/x~1y/~0", "value": 1.0}], {"x/y": {"~": 1}}),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": True}], MISSING),
    ({}, [{"op": "frobnicate", "path": "/a"}], MISSING),
    ({}, [{"op": "add", "path": "/a"}], MISSING),
    ({}, [{"op": "add", "path": "a", "value": 1}], MISSING),
]


@pytest.mark.parametrize(("document", "operations", "patched"), PATCHES)
def test_patch(document: Any, operations: list[dict[str, Any]], patched: Any) -> None:
    assert apply_patch(document, operations) == patched


SHAPES: list[tuple[str, list[Any], list[Any]]] = [
    ("string", ["x"], [1, None]),
    ("number", [1, 2.5], [True, "1"]),
    ("object", [{}, []], ["x", None]),
    ("null | 'red' | -1", [None, "red", -1], ["blue", 1, True]),
    ("number[][]", [[[1], []]], [[1]]),
    ("[number, string?, ...boolean[]]", [[1], [1, "a"], [1, "a", True]], [[], ["a"], [1, "a", 2]]),
    (
        '{ a: number; b?: string\n "odd key": any, // tail\n }',
        [{"a": 1, "odd key": 0}, {"a": 1, "b": "x", "odd key": None, "more": 1}],
        [{"a": 1}, {"a": 1, "b": 2, "odd key": 0}],
    ),
    ("{ [name: string]: number }", [{}, {"a": 1}], [{"a": "x"}, [1]]),
    ("{}", [{}, [], 0, "x"], [None]),
    ("({ a: 1 } & { b: 2 }) | 'none'", [{"a": 1, "b": 2}, "none"], [{"a": 1}]),
    ("bigint", [], [1]),
    ("integer", [1, -3, 2.0, 10**30], [1.5, True, "1", None]),
    ("{ a: }", [], [{}, {"a": 1}]),
    ("", [], [None, 1]),
]


@pytest.mark.parametrize(("definition", "matching", "others"), SHAPES)
def test_shape(definition: str, matching: list[Any], others: list[Any]) -> None:
    assert [document for document in matching if not matches_schema(document, definition)] == []
    assert [document for document in others if matches_schema(document, definition)] == []


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1, max_size=1), inner),
    max_leaves=8,
)


@given(documents)
def test_json_tree_visits_every_value_and_its_paths_lead_there(document: Any) -> None:
    source = render_json(document)
    for key, value, kind, atom, number, parent, full, path in rows("json_tree", source):
        found = scalar("json_extract", source, "$" + full)
        assert (render_json(found) if kind in ("array", "object") else found) == value
        assert atom == (None if kind in ("array", "object") else value)
        assert parent < number
        assert full.startswith(path)
        assert key is None or full.endswith((f".{key}", f"[{key}]"))


@given(documents, st.sampled_from(["$", "$.a", "$.b", "$[0]", "$.a[1]", "$.a.b"]), st.integers(0, 9))
def test_set_is_replace_where_there_is_a_value_and_insert_where_there_is_none(
    document: Any, path: str, value: int
) -> None:
    source = render_json(document)
    there = scalar("json_type", source, path) is not None
    changed = scalar("json_set", source, path, value)
    if there:
        assert changed == scalar("json_replace", source, path, value)
        assert scalar("json_extract", changed, path) == value
    assert scalar("json_replace" if not there else "json_insert", source, path, value) == document
