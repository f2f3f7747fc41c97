"""Scalar functions by example: each table is a family, each line a call and its value."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quereus_store.errors import Error, StatusCode
from quereus_store.functions.builtins import builtin_functions
from quereus_store.functions.registry import FunctionRegistry, ScalarFunction
from quereus_store.types.logical import ANY, BLOB, INTEGER, JSON, NULL, NUMERIC, REAL, TEXT

from .calling import scalar

BIG = 2**70 + 1

NUMERIC_CALLS = [
    ("abs", (-4,), 4),
    ("abs", (-4.5,), 4.5),
    ("abs", (-BIG,), BIG),
    ("abs", (None,), None),
    ("round", (3.5,), 4.0),
    ("round", (-3.5,), -3.0),
    ("round", (3.14159, 2), 3.14),
    ("round", (7, 2), 7),
    ("round", (15, -1), 20),
    ("round", (-15, -1), -10),
    ("round", (BIG, -2), (BIG + 50) // 100 * 100),
    ("round", (1234.5, -2), 1200.0),
    ("round", (2.5, None), 3.0),
    ("round", (None, 2), None),
    ("floor", (-2.5,), -3.0),
    ("floor", (BIG,), BIG),
    ("ceil", (2.1,), 3.0),
    ("ceiling", (math.inf,), math.inf),
    ("trunc", (-2.7,), -2.0),
    ("clamp", (5, 1, 3), 3),
    ("clamp", (2, 9, 3), 9),
    ("clamp", (None, 1, 3), None),
    ("sqrt", (2,), 1.4142135623730951),
    ("sqrt", (-1,), None),
    ("sqrt", ("9",), 3.0),
    ("sqrt", ("nine",), None),
    ("pow", (2, -1), 0.5),
    ("power", (2, 10), 1024.0),
    ("pow", (0, 0), 1.0),
    ("pow", (-8, 0.5), None),
    ("pow", (10, 400), math.inf),
    ("pow", (-10, 401), -math.inf),
    ("sign", (-2.5,), -1),
    ("mod", (-7, 3), -1),
    ("mod", (5.5, 2), 1.5),
    ("mod", (1, 0), None),
    ("ln", (1,), 0.0),
    ("ln", (0,), None),
    ("log", (2, 8), 3.0),
    ("log10", (10**400,), 400.0),
    ("exp", (1000,), math.inf),
    ("sin", ("x",), None),
    ("degrees", (math.pi,), 180.0),
    ("pi", (), math.pi),
]

CONDITIONAL_CALLS = [
    ("coalesce", (), None),
    ("coalesce", (None, 2, 3), 2),
    ("ifnull", (None, "x"), "x"),
    ("nullif", (1, 1.0), None),
    ("nullif", ("a", "b"), "a"),
    ("nullif", (None, 1), None),
    ("iif", ("0x10", "yes", "no"), "yes"),
    ("iif", ("abc", "yes", "no"), "no"),
    ("iif", (None, "yes"), None),
    ("greatest", (None, 3, 9, 4), 9),
    ("least", (None, 3, 9, 4), 3),
    ("greatest", (), None),
    ("least", ("abc", 1), 1),
    ("choose", (2, "a", "b"), "b"),
    ("choose", (3, "a", "b"), None),
    ("choose", (1.5, "a", "b"), None),
    ("choose", (None, "a", "b"), None),
    ("typeof", (None,), "null"),
    ("typeof", (4.0,), "real"),
    ("typeof", (True,), "integer"),
    ("typeof", ({},), "json"),
]

TEXT_CALLS = [
    ("upper", ("straße",), "STRASSE"),
    ("upper", (5,), None),
    ("lower", ("ÄB",), "äb"),
    ("length", ("😀a",), 2),
    ("length", (b"\x00\x01",), 2),
    ("length", (5,), None),
    ("octet_length", ("é",), 2),
    ("substr", ("abcdef", 2), "bcdef"),
    ("substr", ("abcdef", 2, 3), "bcd"),
    ("substr", ("abcdef", -2), "ef"),
    ("substr", ("abcdef", -3, 2), "de"),
    ("substr", ("abcdef", -10, 3), ""),
    ("substr", ("abcdef", 0, 3), "ab"),
    ("substr", ("abc", 1, -1), ""),
    ("substr", ("abc", 1, None), None),
    ("substr", ("abc",), None),
    ("substr", (12345, 2, 2), "23"),
    ("substr", ("abc", "x"), None),
    ("substring", ("a😀b", 2, 1), "😀"),
    ("substr", (b"\x01\x02\x03", 2), b"\x02\x03"),
    ("trim", ("\u00a0 a \t",), "a"),
    ("trim", ("xxaxx", "x"), "a"),
    ("trim", ("a-b-", "a-"), "b"),
    ("trim", ("xax", ""), "xax"),
    ("ltrim", ("  a ",), "a "),
    ("rtrim", ("  a ", None), "  a"),
    ("replace", ("aXbX", "X", "--"), "a--b--"),
    ("replace", ("abc", "", "x"), "abc"),
    ("replace", ("abc", None, "x"), None),
    ("replace", (1213, 1, "x"), "x2x3"),
    ("instr", ("hello", "l"), 3),
    ("instr", ("hello", "z"), 0),
    ("instr", ("hello", ""), 1),
    ("instr", ("a😀b", "b"), 3),
    ("reverse", ("abc",), "cba"),
    ("lpad", ("7", 4, "xy"), "xyx7"),
    ("lpad", ("abcdef", 3, "x"), "abcdef"),
    ("lpad", ("a", 3, ""), "a"),
    ("lpad", (7, 4, "x"), None),
    ("rpad", ("7", 3), "7  "),
    ("left", ("abc", 2), "ab"),
    ("left", ("abc", -1), "ab"),
    ("right", ("abc", 2), "bc"),
    ("right", ("abc", -1), "bc"),
    ("repeat", ("ab", 2), "abab"),
    ("split_part", ("a,b,c", ",", 2), "b"),
    ("split_part", ("a,b,c", ",", -1), "c"),
    ("split_part", ("a,b,c", ",", 9), ""),
    ("starts_with", ("abc", "ab"), True),
    ("concat", ("a", None, 1, 2.0), "a12"),
    ("concat_ws", ("-", "a", None, "b"), "a-b"),
    ("char", (72, 105), "Hi"),
    ("unicode", ("😀",), 0x1F600),
    ("quote", ("it's",), "'it''s'"),
    ("quote", (b"\x0a",), "x'0a'"),
    ("like", ("a%", "apple"), True),
    ("like", ("A%", "apple"), False),
    ("like", ("_", "😀"), True),
    ("like", ("10!%", "10%", "!"), True),
    ("like", ("obj%", None), None),
    ("like", ("12%", 1234), True),
    ("glob", ("[^a]*", "bcd"), True),
    ("glob", ("abc*", "ABCD"), False),
    ("regexp", ("^a.c$", "abc"), True),
]

BLOB_CALLS = [
    ("hex", ("abc",), "616263"),
    ("hex", (255,), "323535"),
    ("hex", (True,), "74727565"),
    ("hex", (b"\xca\xfe",), "CAFE"),
    ("hex", (None,), None),
    ("unhex", ("CAfe",), b"\xca\xfe"),
    ("unhex", ("",), b""),
    ("unhex", ("616",), None),
    ("unhex", ("61 62",), None),
    ("unhex", (42,), None),
    ("zeroblob", (2,), b"\x00\x00"),
    ("randomblob", (0,), b""),
    ("randomblob", (2.5,), b""),
    ("randomblob", ("4",), None),
]

CONVERSION_CALLS = [
    ("integer", ("12abc",), 12),
    ("integer", ("1e3",), 1),
    ("integer", ("",), None),
    ("integer", (-3.9,), -3),
    ("integer", (True,), 1),
    ("integer", ("90071992547409930",), 90071992547409930),
    ("real", ("1.5abc",), 1.5),
    ("real", (2,), 2.0),
    ("text", (3.0,), "3"),
    ("text", (True,), "true"),
    ("text", (b"\xff",), "\ufffd"),
    ("text", ({"a": 1},), '{"a":1}'),
    ("blob", ("6162",), b"6162"),
    ("blob", (42,), b"42"),
    ("boolean", (" Yes ",), True),
    ("boolean", (0,), False),
    ("date", ("2025-03-01T01:00:00+02:00",), "2025-02-28"),
    ("date", (86400,), "1970-01-01"),
    ("time", (3725.25,), "01:02:05.25"),
    ("datetime", ("2025-03-01 10:30",), "2025-03-01T10:30:00"),
    ("datetime", ("2024-05-06",), "2024-05-06T00:00:00"),
    ("timespan", ("2 hours 15 mins",), "PT2H15M"),
    ("timespan", (90,), "PT90S"),
    ("timespan", ("PT1.5H",), "PT1H30M"),
    ("json", ('{"a": [1]}',), {"a": [1]}),
    ("json", ("null",), None),
]

DATE_CALLS = [
    ("date", ("2025-03-31", "-1 month"), "2025-02-28"),
    ("date", ("2025-03-05", "start of month", "+1 month", "-1 day"), "2025-03-31"),
    ("date", ("2024-01-15", "weekday 0"), "2024-01-21"),
    ("date", ("2024-05-06", "+1 week"), "2024-05-06"),
    ("date", ("soon", "+1 day"), None),
    ("date", (86400, "unixepoch"), "1970-01-02"),
    ("date", ("2024-03-04", None), "2024-03-04"),
    ("date", (), None),
    ("datetime", ("2024-05-06", "+0 days"), "2024-05-06 00:00:00"),
    ("datetime", ("2024-05-06", "+1.5 hours"), None),
    ("datetime", ("2025-03-05T10:00:00+02:00", "utc"), "2025-03-05 08:00:00"),
    ("time", ("12:00:00", "subsec"), "12:00:00.000"),
    ("julianday", ("2025-03-05",), 2460739.5),
    ("epoch_s", ("1969-12-31T23:59:58.5Z",), -2),
    ("epoch_ms", ("2024-03-04",), 1709510400000),
    ("epoch_s_frac", ("2024-03-04T00:00:00.500Z",), 1709510400.5),
    ("strftime", ("%S%f", "2024-05-06 01:02:03.5"), "03.500"),
    ("strftime", (5, "2024-05-06"), None),
    ("IsISODate", ("2024-02-30",), False),
    ("IsISODate", (None,), False),
    ("IsISODateTime", ("2024-03-04T05:06:07",), True),
    ("timespan_hours", ("PT90M",), 0),
    ("timespan_total_hours", ("PT90M",), 1.5),
    ("timespan_total_days", ("P1M",), 31.0),
    ("timespan_seconds", ("PT1.5S",), 1.5),
    ("timespan_years", ("1 year",), None),
]

ALL_CALLS = [
    *NUMERIC_CALLS,
    *CONDITIONAL_CALLS,
    *TEXT_CALLS,
    *BLOB_CALLS,
    *CONVERSION_CALLS,
    *DATE_CALLS,
]


@pytest.mark.parametrize(("name", "arguments", "value"), ALL_CALLS)
def test_value(name: str, arguments: tuple[Any, ...], value: Any) -> None:
    result = scalar(name, *arguments)
    assert (type(result), result) == (type(value), value)


FAILURES = [
    ("integer", ("ab",), "Cannot convert to INTEGER: Cannot convert 'ab' to INTEGER"),
    ("boolean", ("",), "Cannot convert to BOOLEAN: Cannot convert '' to BOOLEAN"),
    ("date", ("soon",), "Cannot convert to DATE: Cannot convert 'soon' to DATE: Cannot parse: soon"),
    ("timespan", ("1.5 hours",), "Cannot convert to TIMESPAN: Cannot convert '1.5 hours' to TIMESPAN"),
    ("json", ("abc",), "Cannot convert to JSON: Cannot convert 'abc' to JSON: invalid JSON syntax"),
    ("hex", ({"a": 1},), "Cannot convert to BLOB for hex(): Cannot convert object to BLOB"),
]


@pytest.mark.parametrize(("name", "arguments", "reason"), FAILURES)
def test_failure_names_the_function_and_keeps_the_cause(
    name: str, arguments: tuple[Any, ...], reason: str
) -> None:
    with pytest.raises(Error, match=re.escape(f"Function {name} failed: {reason}")) as caught:
        scalar(name, *arguments)
    assert caught.value.code is StatusCode.ERROR
    assert isinstance(caught.value.__cause__, Error)
    assert caught.value.__cause__.code is StatusCode.MISMATCH


@pytest.mark.parametrize("name", ["abs", "round", "floor", "ceil", "ceiling"])
def test_numeric_functions_refuse_other_types_at_prepare(name: str) -> None:
    function = builtin_functions().find(name, 1)
    assert isinstance(function, ScalarFunction)
    assert function.check is not None
    for accepted in (INTEGER, REAL, NUMERIC, ANY, NULL):
        function.check([accepted])
    for refused in (TEXT, BLOB, JSON):
        with pytest.raises(Error, match=f"Invalid argument types for function {name}") as caught:
            function.check([refused])
        assert caught.value.code is StatusCode.MISMATCH


def test_a_json_string_is_no_json_text() -> None:
    assert scalar("json_type", "7", types=[TEXT]) == "integer"
    assert scalar("json_type", "7", types=[JSON]) == "text"
    assert scalar("json", "7", types=[JSON]) == "7"


def test_the_clock_functions_agree() -> None:
    assert scalar("datetime", "now").startswith(scalar("date", "now", "start of day")[:8])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", scalar("datetime", "now"))


@given(st.text(max_size=6), st.integers(-8, 8), st.one_of(st.none(), st.integers(-2, 8)))
def test_constants_cut_as_all_numbers_do(text: str, start: int, count: int | None) -> None:
    places = (start,) if count is None else (start, count)
    function = builtin_functions().find("substr", 1 + len(places))
    assert isinstance(function, ScalarFunction)
    assert function.with_constants is not None
    cut = function.with_constants(TEXT, places)
    if start > 0 and (count is None or count >= 0):
        assert cut is not None
    if cut is not None:
        assert cut(text) == function.call(text, *places)
        assert cut(None) is None


def test_the_clock_is_looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(10))
    monkeypatch.setattr("time.time_ns", lambda: next(seconds) * 10**9)
    assert [scalar("strftime", "%S", " NOW ") for _ in range(3)] == ["00", "01", "02"]
    assert [scalar("epoch_s", "now") for _ in range(2)] == [3, 4]
    assert scalar("strftime", "%S", {"no": "time"}) is None


def test_random_values() -> None:
    assert len({scalar("random") for _ in range(5)}) == 5
    assert len(scalar("randomblob", 16)) == 16
    assert len(scalar("randomblob", 10**9)) == 1 << 20


class TestLookup:
    def test_exact_arity_wins_over_variadic(self) -> None:
        registry = builtin_functions()
        one, two = registry.find("DATE", 1), registry.find("date", 2)
        assert one is not None
        assert two is not None
        assert one.maximum == 1
        assert two.maximum is None

    def test_unknown_names_and_arities(self) -> None:
        registry = builtin_functions()
        assert registry.find("min", 2) is None
        assert registry.find("row_number", 0) is None
        assert registry.find("random", 1) is None
        assert not registry.knows("no_such_function")

    def test_an_upper_layer_replaces_one_arity_only(self) -> None:
        mine = ScalarFunction("Round", lambda value: "mine", 1, 1, TEXT)
        registry = FunctionRegistry([mine], parent=builtin_functions())
        assert registry.find("round", 1) is mine
        assert registry.find("round", 2) is builtin_functions().find("round", 2)
        assert [f.name for f in registry if f.name.lower() == "round"] == ["round", "Round"]
        assert registry.unregister("ROUND", 1)
        assert registry.find("round", 1) is builtin_functions().find("round", 1)

    def test_a_variadic_upper_function_leaves_exact_builtins(self) -> None:
        mine = ScalarFunction("abs", lambda *values: 0, 0, None, INTEGER)
        registry = FunctionRegistry([mine], parent=builtin_functions())
        assert registry.find("abs", 1) is builtin_functions().find("abs", 1)
        assert registry.find("abs", 3) is mine

    def test_the_built_ins_are_frozen(self) -> None:
        with pytest.raises(Error, match="cannot be changed in place"):
            builtin_functions().register(ScalarFunction("x", str, 1, 1, TEXT))


def test_inline_templates_name_each_argument_at_most_once() -> None:
    for function in builtin_functions():
        if isinstance(function, ScalarFunction):
            for types, template in (function.inline or {}).items():
                for position in range(len(types)):
                    assert template.count(f"{{{position}}}") == 1, function.name


@given(st.text(max_size=8), st.integers(-10, 10), st.integers(-3, 10))
def test_substr_holds_the_positions_asked_for(text: str, start: int, count: int) -> None:
    first = start if start >= 0 else len(text) + start + 1
    wanted = [text[place - 1] for place in range(first, first + count) if 1 <= place <= len(text)]
    assert scalar("substr", text, start, count) == "".join(wanted)


@given(st.binary(max_size=20))
def test_unhex_undoes_hex(data: bytes) -> None:
    assert scalar("unhex", scalar("hex", data)) == data


@given(st.integers(), st.integers(-5, 5))
def test_round_of_integers_is_within_half_a_unit(number: int, digits: int) -> None:
    rounded = scalar("round", number, digits)
    unit = 10 ** max(-digits, 0)
    assert rounded % unit == 0
    assert -unit <= 2 * (number - rounded) < unit or rounded == number
