"""Collations and the lattice that picks one (types-and-values, sections 10 and 18)."""

import pytest

from quereus_store.errors import Error, InterfaceError, StatusCode
from quereus_store.types.collations import (
    BINARY,
    NOCASE,
    RTRIM,
    CollationContribution,
    CollationRank,
    CollationRegistry,
    carry_contributions,
    honours_collation,
    resolve_comparison_collation,
    resolve_list_collation,
)
from quereus_store.types.logical import ANY, DATE, INTEGER, JSON, TEXT


def explicit(name):
    return CollationContribution(name, CollationRank.EXPLICIT)


def declared(name):
    return CollationContribution(name, CollationRank.DECLARED)


def default(name):
    return CollationContribution(name, CollationRank.DEFAULT)


def test_built_in_collations():
    assert BINARY.comparator("a", "B") > 0
    assert NOCASE.comparator("a", "B") < 0
    assert NOCASE.comparator("Ä", "ä") == 0
    assert RTRIM.comparator("a \t", "a") > 0
    assert RTRIM.comparator("a  ", "a") == 0
    assert BINARY.is_binary
    assert not NOCASE.is_binary


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        (None, None, "BINARY"),
        (declared("NOCASE"), None, "NOCASE"),
        (None, declared("NOCASE"), "NOCASE"),
        (declared("NOCASE"), explicit("BINARY"), "BINARY"),
        (declared("BINARY"), default("NOCASE"), "BINARY"),
        (default("NOCASE"), default("RTRIM"), "BINARY"),
        (declared("RTRIM"), declared("RTRIM"), "RTRIM"),
    ],
)
def test_the_highest_rank_wins(left, right, name):
    assert resolve_comparison_collation(left, right) == name
    assert resolve_comparison_collation(right, left) == name


def test_conflicts_are_errors():
    with pytest.raises(Error) as caught:
        resolve_comparison_collation(explicit("NOCASE"), explicit("RTRIM"))
    assert str(caught.value) == "conflicting COLLATE clauses in comparison: NOCASE vs RTRIM"
    with pytest.raises(Error) as caught:
        resolve_comparison_collation(declared("NOCASE"), declared("RTRIM"))
    assert str(caught.value) == (
        "ambiguous collation for comparison: column collations NOCASE vs RTRIM differ;"
        " apply an explicit COLLATE"
    )
    assert caught.value.code is StatusCode.ERROR


def test_a_list_resolves_to_one_collation():
    members = [None, declared("NOCASE"), default("RTRIM")]
    assert resolve_list_collation(default("RTRIM"), members) == "NOCASE"
    with pytest.raises(Error, match="conflicting COLLATE"):
        resolve_list_collation(None, [explicit("NOCASE"), explicit("RTRIM")])


def test_what_concatenation_carries():
    assert carry_contributions([None, declared("NOCASE"), default("RTRIM")]) == declared("NOCASE")
    assert carry_contributions([declared("NOCASE"), declared("RTRIM")]) is None
    assert carry_contributions([declared("NOCASE"), declared("RTRIM"), explicit("BINARY")]) == explicit(
        "BINARY"
    )
    assert carry_contributions([]) is None


def test_registering():
    registry = CollationRegistry()
    added = registry.register("Length", lambda a, b: len(a) - len(b), lambda text: "x" * len(text))
    assert registry.get("LENGTH") is added
    assert registry.find("length") is added
    assert registry.names() == ["BINARY", "LENGTH", "NOCASE", "RTRIM"]
    replaced = registry.register("nocase", NOCASE.comparator)
    assert registry.get("NOCASE") is replaced
    assert registry.unregister("length") is True
    assert registry.unregister("length") is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("binary", min), "registerCollation: BINARY cannot be overridden"),
        (("", min), "registerCollation: name must be a non-empty string"),
        ((5, min), "registerCollation: name must be a non-empty string"),
        (("x", "no"), "registerCollation: func must be a function"),
        (("x", min, "no"), "registerCollation: normalizer must be a function when supplied"),
    ],
)
def test_registering_wrongly(arguments, message):
    with pytest.raises(InterfaceError) as caught:
        CollationRegistry().register(*arguments)
    assert str(caught.value) == message
    assert caught.value.code is StatusCode.MISUSE


def test_unknown_names():
    registry = CollationRegistry()
    with pytest.raises(Error) as caught:
        registry.get("german")
    assert str(caught.value) == "no such collation sequence: GERMAN"


@pytest.mark.parametrize(
    ("logical_type", "name", "hint"),
    [
        (TEXT, "german", "expected one of: BINARY, NOCASE, RTRIM, or a registered collation"),
        (JSON, "nocase", "type supports no collation other than BINARY"),
        (DATE, "nocase", "type supports no collation other than BINARY"),
        (INTEGER, "german", "not a registered collation"),
    ],
)
def test_a_column_that_may_not_be_collated(logical_type, name, hint):
    with pytest.raises(Error) as caught:
        CollationRegistry().check_column(name, logical_type, "c")
    assert (
        str(caught.value)
        == f"Unknown collation '{name}' for type '{logical_type.name}' on column 'c' ({hint})"
    )


def test_a_column_that_may():
    registry = CollationRegistry()
    assert registry.check_column("nocase", TEXT, "c") == "NOCASE"
    assert registry.check_column("rtrim", INTEGER, "c") == "RTRIM"
    assert registry.check_column("binary", JSON, "c") == "BINARY"
    assert honours_collation(TEXT)
    assert honours_collation(ANY)
    assert not honours_collation(INTEGER)


def test_a_missing_normalizer_is_told():
    collation = CollationRegistry().register("plain", min)
    with pytest.raises(
        Error, match="collation PLAIN has no key normalizer; grouping and hash-join keys require one"
    ):
        collation.require_normalizer()
    with pytest.raises(Error, match="collation PLAIN cannot key a persisted structure: no key normalizer"):
        collation.require_persistent_normalizer()
