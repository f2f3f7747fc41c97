"""Text functions: everything counts in code points (functions, section 4).

Two habits run through the family.  Functions that *look at* text (``length``, ``upper``, ``reverse``) answer
NULL for values that are no text; functions that *cut and search* text (``substr``, ``trim``, ``replace``,
``instr``) first render their arguments as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from quereus_store.functions.arguments import check_size, whole_number_of
from quereus_store.functions.registry import Function, ScalarFunction
from quereus_store.sql.renderer.base import quote_text
from quereus_store.types.logical import BOOLEAN, DATE, DATETIME, INTEGER, TEXT, TIME, TIMESPAN, LogicalType
from quereus_store.types.patterns import glob_matcher, like_matcher, regexp_matcher
from quereus_store.types.values import WHITE_SPACE, Value, to_text

_BLANKS = repr(WHITE_SPACE)

_SPELLED = (TEXT, DATE, TIME, DATETIME, TIMESPAN)


def _text(value: Value) -> str:
    return value if type(value) is str else to_text(value) or ""


def upper(value: Value) -> str | None:
    """Upper case by the full Unicode mapping; NULL for what is no text."""
    return value.upper() if type(value) is str else None


def lower(value: Value) -> str | None:
    """Lower case by the full Unicode mapping; NULL for what is no text."""
    return value.lower() if type(value) is str else None


def length(value: Value) -> int | None:
    """Code points of a text, bytes of a blob; NULL for anything else."""
    return len(value) if type(value) is str or type(value) is bytes else None


def octet_length(value: Value) -> int:
    """Bytes of a blob, or of the UTF-8 form of a value's text."""
    return len(value) if type(value) is bytes else len(_text(value).encode("utf-8", "surrogatepass"))


def substr(value: Value, start: Value, count: Value = None) -> str | bytes | None:
    """The characters from ``start`` (from 1; negative: from the end), ``count`` of them or all.

    Positions outside the text count but hold nothing, as in the standard's SUBSTRING; a blob is cut by bytes.
    """
    first = whole_number_of(start)
    return None if first is None else _cut(value, first, None)


def substr_counted(value: Value, start: Value, count: Value) -> str | bytes | None:
    """:func:`substr` with a number of characters; a negative number gives no characters."""
    first, wanted = whole_number_of(start), whole_number_of(count)
    return None if first is None or wanted is None else _cut(value, first, max(wanted, 0))


def _cut(value: Value, start: int, count: int | None) -> str | bytes:
    whole: str | bytes = value if type(value) is bytes else _text(value)
    begin = start - 1 if start > 0 else start + len(whole) if start < 0 else -1
    end = None if count is None else max(begin + count, 0)
    return whole[max(begin, 0) : end]


def _cut_at_constants(kind: LogicalType, constants: Sequence[Value]) -> Callable[[Value], Value] | None:
    """A quicker call for ``substr(text, 3)`` and ``substr(text, 1, 7)``: a slice made beforehand."""
    places = [place for place in constants if type(place) is int]
    if kind not in _SPELLED or len(places) < len(constants) or places[0] < 1 or min(places) < 0:
        return None
    begin = places[0] - 1
    cut: Callable[[Any], Value] = itemgetter(slice(begin, begin + places[1] if len(places) > 1 else None))
    return lambda value: None if value is None else cut(value)


_STRIP: Mapping[str, Callable[[str, str], str]] = {
    "trim": str.strip,
    "ltrim": str.lstrip,
    "rtrim": str.rstrip,
}


def _trimmer(strip: Callable[[str, str], str]) -> Callable[..., str | None]:
    def trim(value: Value = None, characters: Value = None, *ignored: Value) -> str | None:
        if value is None:
            return None
        return strip(_text(value), WHITE_SPACE if characters is None else _text(characters))

    return trim


def replace(value: Value, old: Value, new: Value) -> str:
    """Every occurrence of ``old`` replaced by ``new``; nothing for an empty ``old``."""
    pattern = _text(old)
    return _text(value).replace(pattern, _text(new)) if pattern else _text(value)


def instr(value: Value, wanted: Value) -> int:
    """Position of the first occurrence, from 1; 0 when there is none.  Two blobs are searched by bytes."""
    if type(value) is bytes and type(wanted) is bytes:
        return value.find(wanted) + 1
    return _text(value).find(_text(wanted)) + 1


def reverse(value: Value) -> str | None:
    """The code points in opposite order; NULL for what is no text."""
    return value[::-1] if type(value) is str else None


def _padding(value: Value, width: Value, fill: Value) -> str | None:
    """What has to be added to reach the width; None where the arguments do not fit."""
    wanted = whole_number_of(width) if type(width) in (int, float) else None
    if type(value) is not str or type(fill) is not str or wanted is None:
        return None
    missing = wanted - len(value)
    if missing <= 0 or not fill:
        return ""
    return (fill * (check_size(missing) // len(fill) + 1))[:missing]


def lpad(value: Value, width: Value, fill: Value = " ") -> str | None:
    """Text filled up on the left to ``width`` code points; never cut."""
    padding = _padding(value, width, fill)
    return None if padding is None else padding + _text(value)


def rpad(value: Value, width: Value, fill: Value = " ") -> str | None:
    """Text filled up on the right to ``width`` code points; never cut."""
    padding = _padding(value, width, fill)
    return None if padding is None else _text(value) + padding


def left(value: Value, count: Value) -> str | None:
    """The first ``count`` characters; a negative count leaves out that many at the end."""
    wanted = whole_number_of(count)
    return None if wanted is None else _text(value)[:wanted]


def right(value: Value, count: Value) -> str | None:
    """The last ``count`` characters; a negative count leaves out that many at the start."""
    wanted = whole_number_of(count)
    if wanted is None:
        return None
    text = _text(value)
    return text[max(len(text) - wanted, 0) :] if wanted >= 0 else text[-wanted:]


def repeat(value: Value, count: Value) -> str | None:
    """The text ``count`` times."""
    wanted = whole_number_of(count)
    if wanted is None:
        return None
    text = _text(value)
    check_size(len(text) * wanted)
    return text * wanted if text else ""


def starts_with(value: Value, prefix: Value) -> bool:
    """Whether the text begins with the prefix."""
    return _text(value).startswith(_text(prefix))


def ends_with(value: Value, suffix: Value) -> bool:
    """Whether the text ends with the suffix."""
    return _text(value).endswith(_text(suffix))


def split_part(value: Value, separator: Value, position: Value) -> str | None:
    """The n-th part of a text (from 1; negative: from the end), empty where there is none."""
    wanted, mark = whole_number_of(position), _text(separator)
    if not wanted:
        return None
    parts = _text(value).split(mark) if mark else [_text(value)]
    index = wanted - 1 if wanted > 0 else len(parts) + wanted
    return parts[index] if 0 <= index < len(parts) else ""


def concat(*values: Value) -> str:
    """The texts of all arguments one after another, NULLs left out."""
    return "".join([_text(value) for value in values if value is not None])


def concat_ws(separator: Value, *values: Value) -> str | None:
    """The texts of the arguments joined by the first one, NULLs left out; NULL for a NULL separator."""
    if separator is None:
        return None
    return _text(separator).join([_text(value) for value in values if value is not None])


def char(*codes: Value) -> str:
    """The text of these code points; what is no code point becomes U+FFFD."""
    numbers = [whole_number_of(code) for code in codes if code is not None]
    return "".join([chr(n) if n is not None and 0 <= n <= 0x10FFFF else "\ufffd" for n in numbers])


def unicode(value: Value) -> int | None:
    """The first code point of a text; NULL for an empty one."""
    text = _text(value)
    return ord(text[0]) if text else None


def initcap(value: Value) -> str | None:
    """Every word with a capital letter first; NULL for what is no text."""
    return value.title() if type(value) is str else None


def quote(value: Value) -> str:
    """The value as a SQL literal."""
    kind = type(value)
    if value is None:
        return "null"
    if kind is str:
        return quote_text(_text(value))
    if kind is bytes:
        return f"x'{value.hex()}'"  # type: ignore[union-attr]
    if kind is list or kind is dict:
        return f"json({quote_text(_text(value))})"
    return to_text(value) or ""


@lru_cache(maxsize=256)
def _like(pattern: str, escape: str | None = None) -> Callable[[str], object]:
    return like_matcher(pattern, escape)


@lru_cache(maxsize=256)
def _glob(pattern: str) -> Callable[[str], object]:
    return glob_matcher(pattern)


@lru_cache(maxsize=256)
def _regexp(pattern: str) -> Callable[[str], object]:
    return regexp_matcher(pattern)


def like(pattern: Value, value: Value, escape: Value = None) -> bool:
    """``value LIKE pattern``: case-sensitive, ``%`` any run, ``_`` one code point."""
    return bool(_like(_text(pattern), None if escape is None else _text(escape))(_text(value)))


def glob(pattern: Value, value: Value) -> bool:
    """``value GLOB pattern``: case-sensitive, ``*``, ``?``, ``[a-c]``, ``[^a]``."""
    return bool(_glob(_text(pattern))(_text(value)))


def regexp(pattern: Value, value: Value) -> bool:
    """``value REGEXP pattern``: whether the pattern is found anywhere."""
    return bool(_regexp(_text(pattern))(_text(value)))


def _scalar(
    name: str,
    call: Callable[..., Value],
    minimum: int,
    maximum: int | None,
    returns: Any = TEXT,
    **options: Any,
) -> ScalarFunction:
    return ScalarFunction(name, call, minimum, maximum, returns, **options)


def _of_text(template: str) -> Mapping[tuple[str, ...], str]:
    return {("TEXT",): template}


def _trims() -> list[Function]:
    return [
        _scalar(
            name,
            _trimmer(strip),
            0,
            None,
            null_propagates=False,
            inline={
                ("TEXT",): f"{{0}}.{strip.__name__}({_BLANKS})",
                ("TEXT", "TEXT"): f"{{0}}.{strip.__name__}({{1}})",
            },
        )
        for name, strip in _STRIP.items()
    ]


def _substrings() -> list[Function]:
    # Further arguments are ignored, and too few give NULL, so these are variadic beside the real ones.
    def lenient(*arguments: Value) -> Value:
        if len(arguments) < 2 or None in arguments[:3]:
            return None
        return substr_counted(*arguments[:3])

    return [
        entry
        for name in ("substr", "substring")
        for entry in (
            _scalar(name, substr, 2, 2, with_constants=_cut_at_constants),
            _scalar(name, substr_counted, 3, 3, with_constants=_cut_at_constants),
            _scalar(name, lenient, 0, None, null_propagates=False),
        )
    ]


def text_functions() -> list[Function]:
    """The whole family, ready to register."""
    lengths = {("TEXT",): "len({0})", ("BLOB",): "len({0})"}
    return [
        _scalar("lower", lower, 1, 1, inline=_of_text("{0}.lower()")),
        _scalar("upper", upper, 1, 1, inline=_of_text("{0}.upper()")),
        _scalar("initcap", initcap, 1, 1, inline=_of_text("{0}.title()")),
        *(
            _scalar(name, length, 1, 1, INTEGER, inline=lengths)
            for name in ("length", "char_length", "character_length")
        ),
        _scalar("octet_length", octet_length, 1, 1, INTEGER, nullable=False, inline={("BLOB",): "len({0})"}),
        *_substrings(),
        *_trims(),
        _scalar("btrim", _trimmer(str.strip), 1, 2, null_propagates=False),
        _scalar("replace", replace, 3, 3, nullable=False),
        _scalar(
            "instr", instr, 2, 2, INTEGER, nullable=False, inline={("TEXT", "TEXT"): "({0}.find({1}) + 1)"}
        ),
        _scalar("reverse", reverse, 1, 1, inline=_of_text("{0}[::-1]")),
        _scalar("lpad", lpad, 2, 3, raises=True),
        _scalar("rpad", rpad, 2, 3, raises=True),
        _scalar("left", left, 2, 2),
        _scalar("right", right, 2, 2),
        _scalar("repeat", repeat, 2, 2, raises=True),
        _scalar(
            "starts_with",
            starts_with,
            2,
            2,
            BOOLEAN,
            nullable=False,
            inline={("TEXT", "TEXT"): "{0}.startswith({1})"},
        ),
        _scalar(
            "ends_with",
            ends_with,
            2,
            2,
            BOOLEAN,
            nullable=False,
            inline={("TEXT", "TEXT"): "{0}.endswith({1})"},
        ),
        _scalar("split_part", split_part, 3, 3),
        _scalar("concat", concat, 0, None, nullable=False, null_propagates=False),
        _scalar("concat_ws", concat_ws, 1, None, null_propagates=False),
        _scalar("char", char, 0, None, nullable=False, null_propagates=False),
        _scalar("chr", char, 1, 1, nullable=False),
        _scalar("unicode", unicode, 1, 1, INTEGER),
        _scalar("ascii", unicode, 1, 1, INTEGER),
        _scalar("quote", quote, 1, 1, nullable=False, null_propagates=False),
        _scalar("like", like, 2, 3, BOOLEAN, nullable=False, raises=True),
        _scalar("glob", glob, 2, 2, BOOLEAN, nullable=False),
        _scalar("regexp", regexp, 2, 2, BOOLEAN, nullable=False, raises=True),
    ]
