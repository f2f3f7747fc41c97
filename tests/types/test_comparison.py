"""Comparison: coercion, order of values, lists (types-and-values, sections 8 and 9)."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.types.collations import BINARY, NOCASE, RTRIM, CollationRegistry
from quereus_store.types.comparison import (
    ComparisonMode,
    compare,
    comparison_plan,
    comparison_template,
    equal,
    greater,
    greater_equal,
    is_distinct,
    less,
    less_equal,
    list_plan,
    not_equal,
)
from quereus_store.types.conversion import cast
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
    TIMESTAMP,
    LogicalType,
    PhysicalType,
)


def evaluate(left, left_type, operator, right, right_type, collation=BINARY):
    """Compare as generated code does: cast by the plan, test for NULL, run the template."""
    plan = comparison_plan(left_type, right_type)
    left = cast(left, plan.left_cast) if plan.left_cast else left
    right = cast(right, plan.right_cast) if plan.right_cast else right
    if left is None or right is None:
        return None
    return comparison_template(plan, operator, collation).compile(2)(left, right)


@pytest.mark.parametrize(
    ("left", "left_type", "operator", "right", "right_type", "expected"),
    [
        (5, INTEGER, "=", "5.0", TEXT, True),
        (1000, INTEGER, "=", "1e3", TEXT, True),
        (0, INTEGER, "=", "abc", TEXT, True),
        (12, INTEGER, "=", "12ab", TEXT, True),
        (0, INTEGER, "=", "", TEXT, None),
        (True, BOOLEAN, "=", 1, INTEGER, True),
        (True, BOOLEAN, "=", "1", TEXT, False),
        (True, BOOLEAN, "=", "true", TEXT, False),
        (b"1", BLOB, "=", "1", TEXT, False),
        (5, TIMESTAMP, "=", "5", TEXT, False),
        ("2025-03-01", DATE, "=", 5, INTEGER, False),
        ("2025-03-01", DATE, ">", 5, INTEGER, True),
        ({"a": 1}, JSON, "=", '{ "a" : 1.0 }', TEXT, True),
        (1, JSON, "=", b"\x00", BLOB, None),
        (True, JSON, "=", 1, JSON, False),
        (True, JSON, "=", 1, INTEGER, False),
        ([9], JSON, "<", [10], JSON, True),
        ("fig", JSON, "=", "fig", TEXT, True),
        ("fig", JSON, "=", '"fig"', TEXT, True),
        ([1], JSON, "<>", "oops", TEXT, True),
        ("2025-03-01", DATE, "=", "20250301", TEXT, False),
        ("2025-03-01", DATE, "<", "2025-03-01T00:00:00", TEXT, True),
        ("P1M", TIMESPAN, "=", "P31D", TIMESPAN, True),
        ("PT1H", TIMESPAN, "=", "PT60M", TEXT, True),
        ("PT1H", TIMESPAN, "=", "1 hour", TEXT, False),
        ("PT1H", TEXT, "=", "PT60M", TEXT, False),
        ("PT1H", ANY, "=", "PT60M", TEXT, True),
        ("5", ANY, "=", 5, INTEGER, False),
        (5.0, ANY, "=", 5, INTEGER, True),
        ("x", ANY, "<", b"a", BLOB, True),
        (2**53 + 1, INTEGER, ">", float(2**53), REAL, True),
    ],
)
def test_operators_by_declared_type(left, left_type, operator, right, right_type, expected):
    assert evaluate(left, left_type, operator, right, right_type) is expected


def test_plain_types_compare_with_plain_operators():
    plan = comparison_plan(INTEGER, REAL)
    assert plan.mode is ComparisonMode.NATIVE
    assert comparison_template(plan, "<>").source == "{0} != {1}"
    assert comparison_template(comparison_plan(TEXT, DATE), "<").source == "{0} < {1}"


def test_text_faces_real_as_real_and_other_numbers_as_numeric():
    assert comparison_plan(TEXT, REAL).left_cast is REAL
    assert comparison_plan(TEXT, INTEGER).left_cast is NUMERIC
    assert comparison_plan(NUMERIC, TEXT).right_cast is NUMERIC
    assert comparison_plan(TEXT, NULL).left_cast is None
    assert comparison_plan(NULL, JSON).left_cast is None


@pytest.mark.parametrize("other", [BOOLEAN, TIMESTAMP, ANY, BLOB, DATE])
def test_nothing_else_coerces(other):
    plan = comparison_plan(TEXT, other)
    assert (plan.left_cast, plan.right_cast) == (None, None)


def test_collations_reach_text_only():
    assert evaluate("Ä", TEXT, "=", "ä", TEXT, NOCASE) is True
    assert evaluate("straße", TEXT, "=", "STRASSE", TEXT, NOCASE) is False
    assert evaluate("a  ", TEXT, "=", "a", TEXT, RTRIM) is True
    assert evaluate("K", ANY, "=", "k", TEXT, NOCASE) is True
    plan = comparison_plan(JSON, JSON)
    assert comparison_template(plan, "=", NOCASE, explicit_collation=True).compile(2)("K", "k") is True
    assert comparison_template(plan, "=", NOCASE).compile(2)("K", "k") is False


def test_a_comparator_without_normalizer_compares():
    registry = CollationRegistry()
    backwards = registry.register("backwards!", lambda a, b: (a < b) - (a > b))
    assert evaluate("a", TEXT, ">", "b", TEXT, backwards) is True
    assert evaluate("a", TEXT, "=", "a", TEXT, backwards) is True


def test_a_registered_type_compares_by_its_comparator():
    modulo = LogicalType("MODULO", PhysicalType.INTEGER, compare=lambda a, b: a % 10 - b % 10)
    assert evaluate(13, modulo, "=", 3, modulo) is True
    assert comparison_plan(modulo, INTEGER).mode is ComparisonMode.MIXED


# --- lists ---


@pytest.mark.parametrize(
    ("probe", "members", "probe_cast", "member_casts"),
    [
        (TEXT, [INTEGER, INTEGER], NUMERIC, [None, None]),
        (TEXT, [REAL, NULL], REAL, [None, None]),
        (TEXT, [INTEGER, TEXT], None, [None, None]),
        (INTEGER, [TEXT, INTEGER], None, [NUMERIC, None]),
        (REAL, [TEXT], None, [REAL]),
        (JSON, [TEXT, NULL, INTEGER], None, [JSON, None, JSON]),
        (TEXT, [JSON, INTEGER], JSON, [None, JSON]),
        (BOOLEAN, [TEXT], None, [None]),
        (TEXT, [NULL], None, [None]),
        (TEXT, [], None, []),
    ],
)
def test_lists_coerce_together(probe, members, probe_cast, member_casts):
    plan = list_plan(probe, members)
    assert plan.probe_cast is probe_cast
    assert list(plan.member_casts) == member_casts


def test_list_modes():
    assert list_plan(INTEGER, [INTEGER, TEXT]).mode is ComparisonMode.NATIVE
    assert list_plan(TEXT, [TEXT, NULL]).mode is ComparisonMode.TEXT
    assert list_plan(TIMESPAN, [TEXT]).mode is ComparisonMode.MIXED
    assert list_plan(ANY, [TEXT]).mode is ComparisonMode.RANKED


# --- by value ---


def test_null_in_null_out():
    for operator in (equal, not_equal, less, less_equal, greater, greater_equal):
        assert operator(None, 1) is None
        assert operator(1, None) is None


def test_operators_by_value():
    assert equal(1, True) is True
    assert not_equal("1", 1) is True
    assert less(1, "0") is True
    assert less_equal("a", "a") is True
    assert greater(b"", "zzz") is True
    assert greater_equal([1], b"\xff") is True
    assert equal("PT1H", "PT60M") is True
    assert equal("Pear", "Pear") is True


def test_is_distinct():
    assert is_distinct(None, None) is False
    assert is_distinct(None, 1) is True
    assert is_distinct(1, 1.0) is False


def test_objects_rank_by_canonical_text():
    assert compare([9], [10]) > 0
    assert compare({"b": 1, "a": 2}, {"a": 2, "b": 1}) == 0


def test_nan_equals_itself_above_all_numbers():
    assert compare(math.nan, math.nan) == 0
    assert compare(math.nan, math.inf) > 0
    assert compare(math.nan, "") < 0


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
values = (
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([2**53, 2**53 + 1, float(2**53), 0.5, -0.0, math.inf, -math.inf, math.nan])
    | st.text(alphabet="aAbB ", max_size=2)
    | st.binary(max_size=2)
    | documents
)


@settings(max_examples=150)
@given(values, values, values)
def test_compare_is_a_total_order(a, b, c):
    assert compare(a, a) == 0
    assert (compare(a, b) < 0) == (compare(b, a) > 0)
    if compare(a, b) <= 0 and compare(b, c) <= 0:
        assert compare(a, c) <= 0
