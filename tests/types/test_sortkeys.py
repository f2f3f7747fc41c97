"""Keys that make ``sorted`` and ``dict`` follow SQL (types-and-values, sections 10 and 15)."""

import functools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import Error
from quereus_store.types.collations import BINARY, NOCASE, RTRIM, CollationRegistry
from quereus_store.types.comparison import compare
from quereus_store.types.json import compare_json
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    DATE,
    INTEGER,
    JSON,
    NULL,
    NUMERIC,
    REAL,
    TEXT,
    TIMESPAN,
    LogicalType,
    PhysicalType,
)
from quereus_store.types.sortkeys import identity_key, order_key, reversed_key
from quereus_store.types.temporal.duration import compare_timespans

REGISTRY = CollationRegistry()
BACKWARDS = REGISTRY.register("backwards", lambda a, b: (a < b) - (a > b))
FOLDED = REGISTRY.register(
    "folded", lambda a, b: (a.casefold() > b.casefold()) - (a.casefold() < b.casefold()), str.casefold
)
ORDERED = REGISTRY.register(
    "ordered",
    lambda a, b: (a.casefold() > b.casefold()) - (a.casefold() < b.casefold()),
    str.casefold,
    order_preserving=True,
)


@pytest.mark.parametrize("logical_type", [INTEGER, BOOLEAN, BLOB, DATE])
def test_plain_values_are_their_own_keys(logical_type):
    assert order_key(logical_type, nullable=False).is_plain
    assert identity_key(logical_type, nullable=True).is_plain


def test_text_is_its_own_key_under_binary():
    assert order_key(TEXT, nullable=False).is_plain
    assert identity_key(TEXT, nullable=True).is_plain
    assert order_key(TEXT, nullable=False, collation=NOCASE).template.source == "{0}.lower()"


def test_real_is_its_own_key_but_for_nan():
    assert order_key(REAL, nullable=False).plain_without_nan


NUMBERS = [4, None, 6, None, -1]


def test_nulls_come_first_in_both_directions():
    ascending = order_key(INTEGER, nullable=True)
    assert sorted(NUMBERS, key=ascending.function) == [None, None, -1, 4, 6]
    descending = order_key(INTEGER, nullable=True, descending=True)
    assert sorted(NUMBERS, key=descending.function, reverse=True) == [None, None, 6, 4, -1]


def test_nulls_last_where_asked():
    ascending = order_key(INTEGER, nullable=True, nulls_first=False)
    assert sorted(NUMBERS, key=ascending.function) == [-1, 4, 6, None, None]
    descending = order_key(INTEGER, nullable=True, descending=True, nulls_first=False)
    assert sorted(NUMBERS, key=descending.function, reverse=True) == [6, 4, -1, None, None]


def test_any_ranks_by_storage_class():
    values = [[10], b"\x00", "b", [9], True, None, 0.5, "B"]
    ordered = [None, 0.5, True, "B", "b", b"\x00", [10], [9]]
    assert sorted(values, key=order_key(ANY, nullable=True).function) == ordered


def test_json_ranks_structurally():
    values = [[10], {"b": 0}, [9], {"a": 9, "c": 9}, True, False, 2, "x", None]
    ordered = [None, False, True, 2, "x", [9], [10], {"a": 9, "c": 9}, {"b": 0}]
    assert sorted(values, key=order_key(JSON, nullable=True).function) == ordered


@pytest.mark.parametrize(
    ("logical_type", "left", "right"),
    [
        (NUMERIC, 4, 4.0),
        (REAL, math.nan, math.nan),
        (REAL, -0.0, 0.0),
        (TIMESPAN, "PT1H", "PT60M"),
        (JSON, {"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}),
        (ANY, True, 1),
        (ANY, {"a": 1}, {"a": 1.0}),
        (ANY, math.nan, -math.nan),
    ],
)
def test_equal_identities(logical_type, left, right):
    key = identity_key(logical_type, nullable=False)
    assert key.apply(left) == key.apply(right)
    assert hash(key.apply(left)) == hash(key.apply(right))
    assert len({key.apply(left), key.apply(right)}) == 1


@pytest.mark.parametrize(
    ("logical_type", "left", "right"),
    [
        (ANY, "1", 1),
        (ANY, b"1", "1"),
        (ANY, [True], [1]),
        (JSON, True, 1),
        (JSON, "1", 1),
        (JSON, [], {}),
        (NUMERIC, 2**53 + 1, float(2**53)),
        (TEXT, "K", "k"),
    ],
)
def test_different_identities(logical_type, left, right):
    key = identity_key(logical_type, nullable=False)
    assert len({key.apply(left), key.apply(right)}) == 2


def test_collated_identities():
    assert identity_key(TEXT, False, NOCASE).apply("Ä") == identity_key(TEXT, False, NOCASE).apply("ä")
    assert identity_key(TEXT, False, RTRIM).apply("a ") == "a"
    assert identity_key(TEXT, False, FOLDED).apply("ß") == "ss"
    assert identity_key(ANY, True, NOCASE).apply("K") == "k"
    assert identity_key(ANY, True, NOCASE).apply(5) == 5


@pytest.mark.parametrize("logical_type", [INTEGER, REAL, TEXT, JSON, TIMESPAN, ANY, NULL])
@pytest.mark.parametrize("collation", [BINARY, NOCASE])
def test_the_identity_of_null_is_none(logical_type, collation):
    assert identity_key(logical_type, True, collation).apply(None) is None


def test_hashing_needs_a_normalizer_but_sorting_does_not():
    assert sorted("abc", key=order_key(TEXT, False, BACKWARDS).function) == ["c", "b", "a"]
    assert sorted(["a", 1, "b"], key=order_key(ANY, False, BACKWARDS).function) == [1, "b", "a"]
    with pytest.raises(Error, match="collation BACKWARDS has no key normalizer"):
        identity_key(TEXT, False, BACKWARDS)


def test_a_registered_type_orders_by_comparator_and_hashes_by_key():
    bare = LogicalType("MODULO", PhysicalType.INTEGER, compare=lambda a, b: a % 10 - b % 10)
    assert sorted([19, 21, 30], key=order_key(bare, False).function) == [30, 21, 19]
    with pytest.raises(Error, match="MODULO cannot be hashed"):
        identity_key(bare, False)
    keyed = LogicalType("MODULO", PhysicalType.INTEGER, compare=bare.compare, key=lambda a: a % 10)
    assert identity_key(keyed, False).apply(13) == identity_key(keyed, False).apply(3)


# --- properties: keys agree with the comparator ---

texts = st.text(alphabet="aAbBß ", max_size=3)
documents = st.recursive(
    st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0]) | texts | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
numbers = st.integers(-3, 3) | st.sampled_from([0.5, -0.0, math.inf, -math.inf, math.nan, 2**53 + 1, 2.0**53])
anything = st.booleans() | numbers | texts | st.binary(max_size=2) | documents
spans = st.sampled_from(["PT1H", "PT60M", "P1D", "P1M", "P31D", "-PT1S", "PT0S", "P1Y", "P366D"])

CASES = [
    (INTEGER, BINARY, st.integers(-3, 3), compare),
    (REAL, BINARY, numbers, compare),
    (TEXT, BINARY, texts, compare),
    (TEXT, NOCASE, texts, NOCASE.comparator),
    (TEXT, RTRIM, texts, RTRIM.comparator),
    (TEXT, FOLDED, texts, FOLDED.comparator),
    (TEXT, ORDERED, texts, ORDERED.comparator),
    (BLOB, BINARY, st.binary(max_size=2), compare),
    (TIMESPAN, BINARY, spans, compare_timespans),
    (JSON, BINARY, documents.filter(lambda value: value is not None), compare_json),
    (ANY, BINARY, anything.filter(lambda value: value is not None), compare),
    (
        ANY,
        NOCASE,
        anything.filter(lambda value: value is not None),
        functools.partial(compare, collation=NOCASE),
    ),
]
IDS = [f"{case[0].name}-{case[1].name}" for case in CASES]


@pytest.mark.parametrize(("logical_type", "collation", "values", "comparator"), CASES, ids=IDS)
def test_order_keys_agree_with_the_comparator(logical_type, collation, values, comparator):
    up = order_key(logical_type, False, collation)
    down = reversed_key(logical_type, False, collation)
    nullable = order_key(logical_type, True, collation)
    identity = identity_key(logical_type, False, collation)

    @settings(max_examples=40, deadline=None)
    @given(values, values)
    def check(left, right):
        order = comparator(left, right)
        assert (up.apply(left) < up.apply(right)) == (order < 0)
        assert (down.apply(left) < down.apply(right)) == (order > 0)
        assert (nullable.apply(left) < nullable.apply(right)) == (order < 0)
        assert nullable.apply(None) < nullable.apply(left)
        assert (identity.apply(left) == identity.apply(right)) == (order == 0)
        if order == 0:
            assert hash(identity.apply(left)) == hash(identity.apply(right))

    check()


@pytest.mark.parametrize(("logical_type", "collation", "values", "comparator"), CASES, ids=IDS)
def test_templates_do_what_the_functions_do(logical_type, collation, values, comparator):
    recipes = [
        make(logical_type, nullable, collation)
        for make in (order_key, reversed_key, identity_key)
        for nullable in (False, True)
    ]

    @settings(max_examples=15, deadline=None)
    @given(values)
    def check(value):
        for recipe in recipes:
            assert recipe.template.compile()(value) == recipe.apply(value)

    check()
