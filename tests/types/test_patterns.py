"""LIKE, GLOB and REGEXP (functions, section 4; types-and-values, section 10)."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import Error
from quereus_store.types.patterns import (
    glob_matcher,
    like_matcher,
    like_prefix,
    like_template,
    regexp_matcher,
)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a%", "apple", True),
        ("A%", "apple", False),
        ("%le", "apple", True),
        ("%pp%", "apple", True),
        ("apple", "apple", True),
        ("apple", "APPLE", False),
        ("a_b", "aäb", True),
        ("_", "😀", True),
        ("", "", True),
        ("", "a", False),
        ("%", "", True),
        ("%%", "anything", True),
        ("_%", "", False),
        ("a%c%e", "abcde", True),
        ("a.c", "abc", False),
        ("a%", "a\nb", True),
        ("a_b", "a\nb", True),
        ("x", "x\n", False),
        ("{%}", "{0}", True),
    ],
)
def test_like(pattern, text, expected):
    assert bool(like_matcher(pattern)(text)) is expected
    assert bool(like_template(pattern).compile()(text)) is expected


def test_like_with_escape():
    assert like_matcher("10!%%", "!")("10% more")
    assert not like_matcher("10!%%", "!")("100")
    assert like_matcher("a!_b", "!")("a_b")
    assert like_matcher("a!!", "!")("a!")
    assert like_template("10!%%", "!").source == "{0}.startswith('10%')"
    with pytest.raises(Error, match="ESCAPE expression must be a single character"):
        like_matcher("a", "xy")


def test_ilike():
    assert like_matcher("A%É", None, True)("abcé")
    assert like_template("APPLE", case_insensitive=True).compile()("apple")


def test_like_prefix_gives_the_seek_range():
    assert like_prefix("ab%c") == "ab"
    assert like_prefix("%ab") == ""
    assert like_prefix("a!%b_", "!") == "a%b"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("ABC*", "abcdef", False),
        ("abc*", "abcdef", True),
        ("a?c", "abc", True),
        ("[abc]", "a", True),
        ("[abc]", "d", False),
        ("[a-c]", "b", True),
        ("[^abc]", "d", True),
        ("[^abc]", "a", False),
        ("[!a]", "!", True),
        ("[!a]", "b", False),
        ("[]a]", "]", True),
        ("[^]]", "]", False),
        ("[^]]", "a", True),
        ("[a", "[a", True),
        ("x[", "x[", True),
        ("[]", "[]", True),
        ("[c-a]", "b", False),
        ("[\\]", "\\", True),
        ("[&&~~]", "&", True),
        ("*", "a\nb", True),
        ("a.c", "abc", False),
    ],
)
def test_glob(pattern, text, expected):
    assert bool(glob_matcher(pattern)(text)) is expected


def test_regexp_finds_anywhere():
    assert regexp_matcher("b+")("abbc")
    assert not regexp_matcher("^b")("abbc")
    with pytest.raises(Error, match="Invalid regular expression"):
        regexp_matcher("(")


@settings(max_examples=100)
@given(st.text(alphabet="ab%_", max_size=5), st.text(alphabet="ab", max_size=5))
def test_like_agrees_with_its_definition(pattern, text):
    definition = "".join({"%": ".*", "_": "."}.get(c, c) for c in pattern)
    expected = re.fullmatch(definition, text, re.DOTALL) is not None
    assert bool(like_matcher(pattern)(text)) is expected
    assert bool(like_template(pattern).compile()(text)) is expected
    if expected:
        assert text.startswith(like_prefix(pattern))
