"""JSON: parsing, rendering, structure, paths (types-and-values, section 11; functions, section 7)."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.types.json import (
    MISSING,
    canonical_json,
    canonicalize,
    compare_json,
    follow_json_path,
    json_equal,
    json_key,
    parse_json,
    parse_json_path,
    render_json,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"b":1,"a":2,"b":3}', {"b": 3, "a": 2}),
        (" [1, 2.5, null] ", [1, 2.5, None]),
        ('"\\ud800"', "\ud800"),
        ("9007199254740993", 9007199254740993),
        ("1e400", math.inf),
    ],
)
def test_strict_source(text, value):
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text", ["", "NaN", "-Infinity", "[1,]", "{a:1}", "// x\n1", "'a'", "01", "[1] 2", '"\n"', "[NaN]"]
)
def test_not_json(text):
    with pytest.raises(ValueError):
        parse_json(text)


def test_integers_of_thousands_of_digits_are_exact():
    (number,) = parse_json(f"[{'7' * 5000}]")
    assert number * 9 == 7 * (10**5000 - 1)
    assert render_json([number]) == f"[{'7' * 5000}]"


def test_too_deep_a_document_is_refused():
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 200_000 + "]" * 200_000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 2, "a": {"x": []}}, '{"b":2,"a":{"x":[]}}'),
        ([1.0, 1e21, 0.5, math.inf, math.nan], "[1,1e+21,0.5,null,null]"),
        (['ä/"\\\n\x01', "\x7f"], '["ä/\\"\\\\\\n\\u0001","\x7f"]'),
        ("\ud800é", '"\\ud800é"'),
        ("{0}", '"{0}"'),
        (["1.5", "NaN"], '["1.5","NaN"]'),
        ({"é": "\udfff"}, '{"é":"\\udfff"}'),
        ([True, False, None], "[true,false,null]"),
    ],
)
def test_compact_rendering(value, text):
    assert render_json(value) == text


def test_canonical_form_sorts_keys_at_every_level():
    assert canonical_json({"b": {"d": 1, "c": 2.0}, "a": []}) == '{"a":[],"b":{"c":2,"d":1}}'
    assert list(canonicalize({"b": 1, "a": 2})) == ["a", "b"]
    assert canonical_json([4.886340232312329e16, math.inf]) == "[48863402323123288,1e999]"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
        ([1, [2]], [1.0, [2.0]]),
        (math.nan, math.nan),
    ],
)
def test_structurally_equal(left, right):
    assert json_equal(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [(True, 1), ("1", 1), ([1, 2], [2, 1]), ({"a": 1}, {"a": True}), ([], {}), (None, False)],
)
def test_structurally_different(left, right):
    assert not json_equal(left, right)


def test_order():
    ascending = [
        None,
        False,
        True,
        -1,
        0.5,
        10,
        "",
        "a",
        [],
        [1],
        [1, 0],
        [2],
        {},
        {"a": 1},
        {"a": 9},
        {"a": 9, "c": 9},
        {"b": 0},
    ]
    backwards = ascending[::-1]
    assert sorted(backwards, key=json_key) == ascending
    assert compare_json([9], [10]) < 0
    assert compare_json({"b": 0}, {"a": 9, "c": 9}) > 0
    assert compare_json({"a": 1}, {"a": 1.0}) == 0


DOCUMENT = {"a": [{"x y": 1}, None], "b": {"0": "zero"}, "c.d": 2}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", DOCUMENT),
        ("$.a", DOCUMENT["a"]),
        (".a[0]", {"x y": 1}),
        ('$.a[0]."x y"', 1),
        ("$.a[1]", None),
        ('$."c.d"', 2),
        ("$.b.0", "zero"),
        ("$.a[2]", MISSING),
        ("$.a.x", MISSING),
        ("$.a.0", MISSING),
        ("$.b[0]", MISSING),
        ("$.A", MISSING),
        ("$.a[1].x", MISSING),
    ],
)
def test_paths(path, value):
    assert follow_json_path(DOCUMENT, parse_json_path(path)) == value


@pytest.mark.parametrize(
    "path", ["", "a", "$a", "$.", "$.a[-1]", "$.a[#-1]", "$.a[0", '$."a', "$[x]", "$.a b", "$..a", "$.a[]"]
)
def test_invalid_paths(path):
    assert parse_json_path(path) is None


# Beyond 2^53 the shortest digits of a float, read as an integer, are another number.
floats = st.floats(min_value=-(2.0**53), max_value=2.0**53)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80)
@given(documents)
def test_rendering_reads_back(document):
    assert json_equal(parse_json(render_json(document)), document)
    assert json.loads(render_json(document)) == document
    assert json_equal(canonicalize(document), document)


@settings(max_examples=80)
@given(documents, documents)
def test_canonical_text_is_equal_for_equal_documents(left, right):
    assert json_equal(left, right) == (canonical_json(left) == canonical_json(right))
    if json_equal(left, right):
        assert hash(json_key(left)) == hash(json_key(right))
    assert (compare_json(left, right) > 0) == (compare_json(right, left) < 0)
