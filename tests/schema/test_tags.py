"""Reserved tags are checked, others are the user's; SET, ADD and DROP."""

# ruff: noqa: E501 - messages are quoted whole

import pytest

from quereus_store.errors import Error, StatusCode
from quereus_store.schema.tags import TagSite, changed_tags, check_table_tags, check_tag
from quereus_store.sql.parser import parse_statement


@pytest.mark.parametrize(
    ("key", "value", "site"),
    [
        ("note", None, TagSite.STATEMENT),
        ("quereus.id", "x", TagSite.INDEX),
        ("quereus.expose_implicit_index", True, TagSite.CONSTRAINT),
        ("quereus.sync.evict", "Never", TagSite.TABLE),
        ("quereus.sync.evict", 5, TagSite.VIEW),
        ("quereus.sync.evict", "250", TagSite.TABLE),
        ("quereus.lens.ack.no-key", "we know", TagSite.LOGICAL_TABLE),
        ("quereus.lens.decomp.key.m", "a, b_2", TagSite.TABLE),
        ("quereus.lens.decomp.role.m", "auxiliary-access", TagSite.TABLE),
    ],
)
def test_tags_that_may_be(key, value, site):
    check_tag(key, value, site)


@pytest.mark.parametrize(
    ("key", "value", "site", "message"),
    [
        (
            "quereus.idd",
            "x",
            TagSite.TABLE,
            "Unknown reserved tag 'quereus.idd' on a basis table: no such key in the reserved 'quereus.*' namespace",
        ),
        (
            "quereus.lens.ack.",
            "x",
            TagSite.LOGICAL_TABLE,
            "Unknown reserved tag 'quereus.lens.ack.' on a logical table: no such key in the reserved 'quereus.*' namespace",
        ),
        (
            "quereus.id",
            "x",
            TagSite.STATEMENT,
            "Reserved tag 'quereus.id' is not allowed on a DML statement; it is valid only on: a basis table, a physical column, a view declaration, a physical index, a physical constraint",
        ),
        ("quereus.id", 5, TagSite.TABLE, "Reserved tag 'quereus.id' on a basis table must be a text value"),
        (
            "quereus.engine_managed",
            1,
            TagSite.TABLE,
            "Reserved tag 'quereus.engine_managed' on a basis table must be a boolean value",
        ),
        (
            "quereus.sync.evict",
            -1,
            TagSite.TABLE,
            "Reserved tag 'quereus.sync.evict' on a basis table must be 'never', 'immediate', or a non-negative number of milliseconds",
        ),
        (
            "quereus.lens.decomp.presence.m",
            "maybe",
            TagSite.TABLE,
            "Reserved tag 'quereus.lens.decomp.presence.m' on a basis table has invalid value maybe; expected one of: mandatory, optional",
        ),
        (
            "quereus.lens.decomp.key.m",
            "",
            TagSite.TABLE,
            "Reserved tag 'quereus.lens.decomp.key.m' on a basis table must be a non-empty comma-separated list of identifiers",
        ),
        (
            "quereus.lens.decomp.key.m",
            "a, 1b",
            TagSite.TABLE,
            "Reserved tag 'quereus.lens.decomp.key.m' on a basis table must be a comma-separated list of identifiers (offending segment: '1b')",
        ),
    ],
)
def test_tags_that_may_not_be(key, value, site, message):
    with pytest.raises(Error) as caught:
        check_tag(key, value, site)
    assert caught.value.message == message


def test_the_tags_of_a_table_are_checked_in_order():
    node = parse_statement(
        'create table t (a integer with tags ("quereus.bad" = 1), constraint c check (a > 0) with tags ("quereus.worse" = 1))'
    )
    with pytest.raises(Error, match=r"quereus\.bad.*on a physical column.*line 1"):
        check_table_tags(node)


def change(tags, clause):
    return changed_tags(tags, parse_statement(f"alter view v {clause}").change)


def test_verbs():
    tags = {"a": 1, "b": 2}
    assert change(tags, "set tags (c = 3, c = 4)") == {"c": 4}
    assert change(tags, "set tags ()") == {}
    assert change(tags, "add tags (b = null, c = 'x')") == {"a": 1, "b": None, "c": "x"}
    assert change(tags, "drop tags (a)") == {"b": 2}
    assert change(tags, "drop tags ()") == tags
    with pytest.raises(Error) as caught:
        change(tags, "drop tags (a, x, y)")
    assert (caught.value.code, caught.value.message) == (StatusCode.NOTFOUND, "Tag key(s) not found: x, y")
