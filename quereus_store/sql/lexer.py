"""Text to tokens (queries, section 1; types-and-values, section 4).

One compiled regular expression recognises every token; blanks and comments are
part of the match and leave nothing behind.  The whole text is read before
anything is parsed, so a lexical error anywhere wins over every other error.

A token carries a ``key``, by which the parser tells it from others without
looking at its kind: the lower-cased word, the operator itself, or, for tokens
that carry a value, a constant that no word or operator can equal.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.sql.nodes import LiteralValue

QUOTED = "<identifier>"
STRING = "<string>"
INTEGER = "<integer>"
REAL = "<real>"
BLOB = "<blob>"
PARAMETER = "<parameter>"
END = "<end>"


class Token(NamedTuple):
    """One token: ``key``, spelling, value, offsets in the text and position (from 1).

    ``is_word`` tells a word without quotes: a keyword or an identifier.
    """

    key: str
    text: str
    value: LiteralValue
    start: int
    end: int
    line: int
    column: int
    is_word: bool = False

    @property
    def position(self) -> SourcePosition:
        """Where the token stands."""
        return SourcePosition(self.line, self.column)


# Order matters where one alternative is a prefix of another; the possessive
# quantifiers keep an unterminated literal from being taken for a shorter, closed one.
_TOKEN = re.compile(
    r"""
    (?:[ \t\r\n\f\v\ufeff]++ | --[^\n]*+ | //[^\n]*+ | /\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/ )*+
    (?:
        (?P<blob>       [xX]'[^']*+(?P<blob_end>')? )
      | (?P<word>       [A-Za-z_][A-Za-z0-9_]*+ )
      | (?P<operator>   ->>|->|\|\||<=|>=|<>|!=|==|<<|>>|/(?!\*)|\.(?![0-9])|[-+*%(),;=<>&|~{}] )
      | (?P<integer>    0[xX][0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+
                      | [0-9]++(?:_[0-9]++)*+(?![.eE]|_[0-9]) )
      | (?P<real>       (?:[0-9]++(?:_[0-9]++)*+(?:\.(?:[0-9]++(?:_[0-9]++)*+)?+)?+
                        | \.[0-9]++(?:_[0-9]++)*+) (?P<exponent>[eE](?P<digits>[-+]?[0-9]++)?+)?+ )
      | (?P<string>     '(?:[^']|'')*+(?P<string_end>')? )
      | (?P<quoted>     "(?:[^"]|"")*+(?P<quote_end>")? | `[^`]*+(?P<tick_end>`)?
                      | \[[^\]]*+(?P<bracket_end>\])? )
      | (?P<parameter>  \?[0-9]*+ | [:$@](?:[A-Za-z_][A-Za-z0-9_]*+|[0-9]++)?+ )
      | (?P<comment>    /\* )
      | (?P<end>        \Z )
      | (?P<other>      . )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_BLANK = re.compile(r"\s+")
# int() refuses longer decimal texts, as a guard against quadratic time.
_LONGEST_INTEGER = 4000


def tokenize(text: str) -> list[Token]:
    """All tokens of a text, the last one with key :data:`END`.

    Raises ``Lexer error: …`` (code ERROR) with the position of the token at fault.
    """
    tokens: list[Token] = []
    append = tokens.append
    line, line_start, newline = 1, 0, text.find("\n")
    position = 0
    while True:
        for match in _TOKEN.finditer(text, position):
            kind = match.lastgroup or "other"
            start, end = match.span(kind)
            while -1 < newline < start:
                line, line_start = line + 1, newline + 1
                newline = text.find("\n", line_start)
            column = start - line_start + 1
            spelling = text[start:end]
            if kind == "word":
                append(Token(spelling.lower(), spelling, None, start, end, line, column, True))
            elif kind == "operator":
                append(Token(spelling, spelling, None, start, end, line, column))
            elif kind == "comment":
                position = _end_of_comment(text, start, SourcePosition(line, column))
                break
            elif kind == "end":
                append(Token(END, "", None, start, end, line, column))
                return tokens
            else:
                key, value = _value_of(kind, match, spelling, SourcePosition(line, column))
                append(Token(key, spelling, value, start, end, line, column))


def _value_of(
    kind: str, match: re.Match[str], text: str, position: SourcePosition
) -> tuple[str, LiteralValue]:
    """Key and value of a token that is neither word nor operator."""
    if kind == "integer":
        return INTEGER, _integer(text)
    if kind == "string":
        if match["string_end"] is None:
            raise _error("Unterminated string.", position)
        return STRING, text[1:-1].replace("''", "'")
    if kind == "quoted":
        if match["quote_end"] is None and match["tick_end"] is None and match["bracket_end"] is None:
            raise _error("Unterminated identifier.", position)
        name = text[1:-1]
        return QUOTED, name.replace('""', '"') if text[0] == '"' else name
    if kind == "real":
        return _real(match, text, position)
    if kind == "parameter":
        return PARAMETER, text[1:]
    if kind == "blob":
        if match["blob_end"] is None:
            raise _error("Unterminated blob literal.", position)
        return BLOB, _blob(text[2:-1], position)
    raise _error("!" if text == "!" else f"Unexpected character: {text}", position)


def _real(match: re.Match[str], text: str, position: SourcePosition) -> tuple[str, LiteralValue]:
    if match["exponent"] is not None and match["digits"] is None:
        raise _error("Invalid number literal: expected digits after exponent.", position)
    return REAL, float(text.replace("_", ""))


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    return decimal_integer(digits)


def decimal_integer(digits: str) -> int:
    """The integer that decimal digits spell, at any length, without the interpreter's limit."""
    if len(digits) <= _LONGEST_INTEGER:
        return int(digits)
    middle = len(digits) // 2
    tail: int = 10 ** (len(digits) - middle)
    return decimal_integer(digits[:middle]) * tail + decimal_integer(digits[middle:])


def _blob(body: str, position: SourcePosition) -> bytes:
    digits = _BLANK.sub("", body)
    if not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise _error("Invalid character in blob literal.", position)
    if len(digits) % 2:
        raise _error("Blob literal must have an even number of hex digits.", position)
    return bytes.fromhex(digits)


def _end_of_comment(text: str, start: int, position: SourcePosition) -> int:
    """The offset after a block comment that contains others."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise _error("Unterminated comment.", position)


def _error(message: str, position: SourcePosition) -> Error:
    return sql_error(StatusCode.ERROR, f"Lexer error: {message}", position)
