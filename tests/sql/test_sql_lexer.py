"""The lexer: what the words, numbers and literals of the language are."""

import pytest

from quereus_store.errors import Error, StatusCode
from quereus_store.sql import lexer
from quereus_store.sql.lexer import tokenize


def keys(text: str) -> list[str]:
    return [token.key for token in tokenize(text)[:-1]]


def values(text: str) -> list[object]:
    return [token.value for token in tokenize(text)[:-1]]


def test_words_are_compared_in_lower_case_and_keep_their_spelling():
    token = tokenize("SeLeCt")[0]
    assert token.key == "select"
    assert token.text == "SeLeCt"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("007", 7),
        ("1_000", 1000),
        ("0x1F", 31),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("2e3", 2000.0),
        ("2.5E-1", 0.25),
        ("5.e1", 50.0),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("'it''s'", "it's"),
        ("'two\nlines'", "two\nlines"),
        ("x'0aFf'", b"\x0a\xff"),
        ("X'41 42\n43'", b"ABC"),
        ("x''", b""),
    ],
)
def test_literals(text: str, value: object):
    (found,) = values(text)
    assert found == value
    assert type(found) is type(value)


def test_integers_of_any_length():
    assert values("9" * 10_000) == [10**10_000 - 1]


def test_a_number_ends_where_its_digits_end():
    assert keys("1__0") == [lexer.INTEGER, "__0"]
    assert keys("1.5.2") == [lexer.REAL, lexer.REAL]


@pytest.mark.parametrize("text", ['"a b"', "`a b`", "[a b]"])
def test_three_ways_to_quote_a_name(text: str):
    assert keys(text) == [lexer.QUOTED]
    assert values(text) == ["a b"]


def test_a_doubled_quote_stands_for_itself():
    assert values('"say ""hi"""') == ['say "hi"']


def test_operators_take_the_longest_match():
    assert keys("a->>b->c||d<<e>=f<>g==h") == [
        *("a", "->>", "b", "->", "c", "||", "d", "<<", "e", ">=", "f", "<>", "g", "==", "h")
    ]


@pytest.mark.parametrize(("text", "value"), [("?", ""), ("?7", "7"), (":a", "a"), ("$a", "a"), ("@a", "a")])
def test_parameters(text: str, value: str):
    assert keys(text) == [lexer.PARAMETER]
    assert values(text) == [value]


def test_comments_of_three_kinds_are_blanks():
    text = "a -- b\n// c\n/* d /* nested */ e */ f"
    assert keys(text) == ["a", "f"]


def test_positions_count_lines_and_columns_from_one():
    places = [(token.line, token.column) for token in tokenize("a\n  b /*\n*/ c\r\n'x\ny' d")]
    assert places == [(1, 1), (2, 3), (3, 4), (4, 1), (5, 4), (5, 5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 'b", "Unterminated string. (at line 1, column 3)"),
        ("'aa''b", "Unterminated string. (at line 1, column 1)"),
        ('\n"a', "Unterminated identifier. (at line 2, column 1)"),
        ("[a", "Unterminated identifier. (at line 1, column 1)"),
        ("/* /* */", "Unterminated comment. (at line 1, column 1)"),
        ("x'4", "Unterminated blob literal. (at line 1, column 1)"),
        ("x'4g'", "Invalid character in blob literal. (at line 1, column 1)"),
        ("x'414'", "Blob literal must have an even number of hex digits. (at line 1, column 1)"),
        ("1e", "Invalid number literal: expected digits after exponent. (at line 1, column 1)"),
        ("1e+", "Invalid number literal: expected digits after exponent. (at line 1, column 1)"),
        ("a ! b", "! (at line 1, column 3)"),
        ("a é", "Unexpected character: é (at line 1, column 3)"),
        ("#", "Unexpected character: # (at line 1, column 1)"),
    ],
)
def test_lexer_errors(text: str, message: str):
    with pytest.raises(Error) as caught:
        tokenize(text)
    assert str(caught.value) == f"Lexer error: {message}"
    assert caught.value.code is StatusCode.ERROR
