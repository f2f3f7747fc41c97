"""Random typed expressions, written for Quereus and for SQLite at once.

The subset is what both understand alike; where they spell a thing differently (real
division, extrema of several arguments) an :class:`Expr` has two texts.  Types are
``int``, ``real``, ``text``, ``nocase`` (a text column that ignores case), ``bool`` and
``any``; expressions of different families never meet, since there the systems differ by intention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.differential.choices import Choices

INTEGERS = ("0", "1", "2", "-1", "3", "5", "-3", "7")
REALS = ("0.5", "1.0", "-0.5", "2.0", "2.5", "0.0", "-2.0")
TEXTS = ("'a'", "''", "'A'", "'ab'", "'b'", "'B_'", "'a%'", "'c'", "'aB'")
PATTERNS = ("'a%'", "'%'", "'_'", "'%b%'", "'A_'", "''", "'a'", "'%B'")
COMPARISONS = ("=", "<", ">", "<=", ">=", "!=", "<>", "==")

PLAIN_TYPES = ("int", "text", "real", "bool")


@dataclass(frozen=True)
class Expr:
    """An expression in both dialects, safe to stand as an operand."""

    quereus: str
    sqlite: str
    type: str
    column: bool = False


def same(template: str, kind: str, *parts: Expr) -> Expr:
    """An expression that both write the same way."""
    return each(template, template, kind, *parts)


def each(quereus: str, sqlite: str, kind: str, *parts: Expr) -> Expr:
    """An expression with a template for either dialect."""
    return Expr(
        quereus.format(*(part.quereus for part in parts)),
        sqlite.format(*(part.sqlite for part in parts)),
        kind,
    )


class Parameters:
    """Named parameters, since a template may use an operand twice."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def add(self, value: object) -> str:
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f":{name}"


class Expressions:
    """Makes expressions over a pool of columns (or group keys and aggregates)."""

    def __init__(
        self,
        choices: Choices,
        pool: Sequence[Expr],
        parameters: Parameters,
        subquery: Callable[..., Expr | None] | None = None,
    ) -> None:
        self.choices = choices
        self.pool = pool
        self.parameters = parameters
        self.subquery = subquery

    def make(self, kind: str, depth: int) -> Expr:
        """An expression of a type."""
        makers = _MAKERS[kind]
        if depth <= 0 or self.choices.chance(35):
            return self.leaf(kind)
        made = self.choices.one_of(makers)(self, depth - 1)
        return made if made is not None else self.leaf(kind)

    def leaf(self, kind: str) -> Expr:
        """A column if there is one of the type, or a literal, a parameter, NULL."""
        columns = [expr for expr in self.pool if expr.type == kind]
        if columns and not self.choices.chance(25):
            return self.choices.one_of(columns)
        if kind == "any":
            return self.constant(self.choices.one_of(("int", "text", "real")))
        return self.constant(kind)

    def constant(self, kind: str) -> Expr:
        """A literal, NULL or a parameter."""
        literal = self.choices.one_of(_LITERALS[kind])
        if self.choices.chance(6):
            return Expr("null", "null", kind)
        if kind != "bool" and self.choices.chance(15):
            value: object = literal.strip("'")
            if kind == "int":
                value = int(literal)
            elif kind == "real":
                value = float(literal)
            name = self.parameters.add(value)
            return Expr(name, name, kind)
        if literal.startswith("-"):
            literal = f"({literal})"
        return Expr(literal, literal, kind)

    # -- numbers -------------------------------------------------------------

    def _arithmetic(self, kind: str, depth: int) -> Expr:
        operators = ("+", "-", "*")
        operator = self.choices.one_of(operators)
        left_kind = right_kind = kind
        if kind == "real" and self.choices.chance(40):
            left_kind = "int"
        if operator == "*":
            depth = 0
        return same(
            f"({{}} {operator} {{}})", kind, self.make(left_kind, depth), self.make(right_kind, depth)
        )

    def _int_arithmetic(self, depth: int) -> Expr:
        return self._arithmetic("int", depth)

    def _real_arithmetic(self, depth: int) -> Expr:
        return self._arithmetic("real", depth)

    def _modulo(self, depth: int) -> Expr:
        return same("({} % {})", "int", self.make("int", depth), self.make("int", depth))

    def _division(self, depth: int) -> Expr:
        kind = self.choices.one_of(("int", "real"))
        left, right = self.make(kind, depth), self.make("int", depth)
        return each("({} / {})", "(cast({} as real) / {})", "real", left, right)

    def _negative(self, kind: str, depth: int) -> Expr:
        return same("(-{})", kind, self.make(kind, depth))

    def _length(self, depth: int) -> Expr:
        return same("length({})", "int", self.make("text", depth))

    def _instr(self, depth: int) -> Expr:
        return same("instr({}, {})", "int", self.make("text", depth), self.make("text", depth))

    def _absolute(self, kind: str, depth: int) -> Expr:
        return same("abs({})", kind, self.make(kind, depth))

    def _truncated(self, depth: int) -> Expr:
        return same("cast({} as integer)", "int", self.make("real", depth))

    def _as_real(self, depth: int) -> Expr:
        return same("cast({} as real)", "real", self.make("int", depth))

    # -- texts ---------------------------------------------------------------

    def _concat(self, depth: int) -> Expr:
        kinds = ("text", "text", "int")
        left, right = self.make("text", depth), self.make(self.choices.one_of(kinds), depth)
        return same("({} || {})", "text", left, right)

    def _case_function(self, depth: int) -> Expr:
        function = self.choices.one_of(("lower", "upper", "trim"))
        return same(f"{function}({{}})", "text", self.make("text", depth))

    def _substring(self, depth: int) -> Expr:
        text = self.make("text", depth)
        start, length = self.choices.one_of(("1", "2")), self.choices.one_of(("1", "2", "0"))
        return same(f"substr({{}}, {start}, {length})", "text", text)

    def _replace(self, depth: int) -> Expr:
        # SQLite gives the text itself for an empty pattern, whatever the replacement.
        pattern, new = self.choices.one_of(("'a'", "'b'", "'A'")), self.choices.one_of(TEXTS)
        return same(f"replace({{}}, {pattern}, {new})", "text", self.make("text", depth))

    def _int_as_text(self, depth: int) -> Expr:
        return same("cast({} as text)", "text", self.make("int", depth))

    # -- any type ------------------------------------------------------------

    def _case(self, kind: str, depth: int) -> Expr:
        branches = 1 + self.choices.below(2)
        text, parts = "(case", []
        if self.choices.chance(40):
            probe = self.choices.one_of(("int", "text"))
            text += " {}"
            parts.append(self.make(probe, depth))
        else:
            probe = "bool"
        for _ in range(branches):
            text += " when {} then {}"
            parts += [self.make(probe, depth), self.make(kind, depth)]
        if not self.choices.chance(30):
            text += " else {}"
            parts.append(self.make(kind, depth))
        return same(text + " end)", kind, *parts)

    def _coalesce(self, kind: str, depth: int) -> Expr:
        parts = [self.make(kind, depth) for _ in range(2 + self.choices.below(2))]
        function = "coalesce" if len(parts) > 2 else self.choices.one_of(("coalesce", "ifnull"))
        return same(f"{function}({', '.join(['{}'] * len(parts))})", kind, *parts)

    def _nullif(self, kind: str, depth: int) -> Expr:
        return same("nullif({}, {})", kind, self.make(kind, depth), self.make(kind, depth))

    def _iif(self, kind: str, depth: int) -> Expr:
        parts = self.make("bool", depth), self.make(kind, depth), self.make(kind, depth)
        return same("iif({}, {}, {})", kind, *parts)

    def _scalar(self, kind: str, depth: int) -> Expr | None:
        return self.subquery("scalar", [kind], depth) if self.subquery else None

    # -- predicates ----------------------------------------------------------

    def _operands(self, depth: int) -> tuple[str, Expr, Expr]:
        """Two comparable expressions."""
        kind = self.choices.one_of(("int", "text", "real", "bool", "nocase", "any"))
        if kind == "nocase":
            columns = [expr for expr in self.pool if expr.type == "nocase"]
            if columns:
                return kind, self.choices.one_of(columns), self.nocase_operand()
            kind = "text"
        if kind == "any":
            columns = [expr for expr in self.pool if expr.type == "any"]
            if columns:
                return kind, self.choices.one_of(columns), self.leaf("any")
            kind = "int"
        other = kind
        if kind in ("int", "real") and self.choices.chance(20):
            other = "real" if kind == "int" else "int"
        return kind, self.make(kind, depth), self.make(other, depth)

    def nocase_operand(self) -> Expr:
        """A literal, or a column that ignores case as well."""
        columns = [expr for expr in self.pool if expr.type == "nocase"]
        if columns and self.choices.chance(50):
            return self.choices.one_of(columns)
        literal = self.choices.one_of(TEXTS)
        return Expr(literal, literal, "nocase")

    def _compare(self, depth: int) -> Expr:
        operator = self.choices.one_of(COMPARISONS)
        _, left, right = self._operands(depth)
        if self.choices.chance(50):
            left, right = right, left
        return same(f"({{}} {operator} {{}})", "bool", left, right)

    def _is(self, depth: int) -> Expr:
        operator = self.choices.one_of(("is", "is not", "is not distinct from", "is distinct from"))
        _, left, right = self._operands(depth)
        return same(f"({{}} {operator} {{}})", "bool", left, right)

    def _is_null(self, depth: int) -> Expr:
        test = self.choices.one_of(("is null", "is not null", "isnull", "notnull"))
        kind = self.choices.one_of(PLAIN_TYPES)
        return same(f"({{}} {test})", "bool", self.make(kind, depth))

    def _is_truth(self, depth: int) -> Expr:
        test = self.choices.one_of(("is true", "is false", "is not true", "is not false"))
        return same(f"({{}} {test})", "bool", self.make(self.choices.one_of(("bool", "int")), depth))

    def _connective(self, depth: int) -> Expr:
        word = self.choices.one_of(("and", "or"))
        parts = [self.make("bool", depth) for _ in range(2 + self.choices.below(2))]
        return same("(" + f" {word} ".join(["{}"] * len(parts)) + ")", "bool", *parts)

    def _not(self, depth: int) -> Expr:
        return same("(not {})", "bool", self.make("bool", depth))

    def _between(self, depth: int) -> Expr:
        kind, value, low = self._operands(depth)
        high = self.nocase_operand() if kind == "nocase" else self.leaf("any") if kind == "any" else None
        if high is None:
            high = self.make(kind, depth)
        word = self.choices.one_of(("between", "not between"))
        return same(f"({{}} {word} {{}} and {{}})", "bool", value, low, high)

    def _in_list(self, depth: int) -> Expr:
        kind, operand, first = self._operands(depth)
        items = [first]
        for _ in range(self.choices.below(4)):
            if kind == "nocase":
                items.append(self.nocase_operand())
            elif kind == "any":
                items.append(self.leaf("any"))
            elif self.choices.chance(70):
                items.append(self.constant(kind))
            else:
                items.append(self.make(kind, 0))
        if len(items) == 1 and items[0].quereus.startswith("(select"):
            # That would be the rows of the query, not its one value.
            items *= 2
        word = self.choices.one_of(("in", "not in"))
        return same(f"({{}} {word} ({', '.join(['{}'] * len(items))}))", "bool", operand, *items)

    def _like(self, depth: int) -> Expr:
        word = self.choices.one_of(("like", "not like", "glob"))
        pattern = self.choices.one_of(PATTERNS)
        if word == "glob":
            pattern = pattern.replace("%", "*").replace("_", "?")
        right = Expr(pattern, pattern, "text") if self.choices.chance(80) else self.make("text", 0)
        return same(f"({{}} {word} {{}})", "bool", self.make("text", depth), right)

    def _row_comparison(self, depth: int) -> Expr:
        kinds = [self.choices.one_of(("int", "text", "real")) for _ in range(2)]
        parts = [self.make(kind, min(depth, 1)) for kind in (*kinds, *kinds)]
        operator = self.choices.one_of(("=", "<", ">=", "!=", "<=", ">"))
        return same(f"(({{}}, {{}}) {operator} ({{}}, {{}}))", "bool", *parts)

    def _exists(self, depth: int) -> Expr | None:
        if self.subquery is None:
            return None
        return self.subquery("exists", [], depth)

    def _in_subquery(self, depth: int) -> Expr | None:
        if self.subquery is None:
            return None
        kinds = [self.choices.one_of(("int", "text", "real", "bool"))]
        if self.choices.chance(20):
            kinds.append(self.choices.one_of(("int", "text")))
        operands = [self.make(kind, min(depth, 1)) for kind in kinds]
        return self.subquery("in", kinds, depth, operands)


def _typed(method: Callable[..., Expr | None], kind: str) -> Callable[[Expressions, int], Expr | None]:
    return lambda maker, depth: method(maker, kind, depth)


def _common(kind: str) -> list[Callable[[Expressions, int], Expr | None]]:
    e = Expressions
    return [_typed(method, kind) for method in (e._coalesce, e._case, e._nullif, e._iif, e._scalar)]


_LITERALS = {
    "int": INTEGERS,
    "real": REALS,
    "text": TEXTS,
    "nocase": TEXTS,
    "bool": ("true", "false"),
    "any": INTEGERS,
}

_MAKERS: dict[str, list[Callable[[Expressions, int], Expr | None]]] = {
    "int": [
        Expressions._int_arithmetic,
        Expressions._modulo,
        _typed(Expressions._negative, "int"),
        _typed(Expressions._absolute, "int"),
        Expressions._length,
        Expressions._instr,
        Expressions._truncated,
        *_common("int"),
    ],
    "real": [
        Expressions._real_arithmetic,
        Expressions._division,
        _typed(Expressions._negative, "real"),
        _typed(Expressions._absolute, "real"),
        Expressions._as_real,
        *_common("real"),
    ],
    "text": [
        Expressions._concat,
        Expressions._case_function,
        Expressions._substring,
        Expressions._replace,
        Expressions._int_as_text,
        *_common("text"),
    ],
    "bool": [
        Expressions._compare,
        Expressions._compare,
        Expressions._connective,
        Expressions._connective,
        Expressions._not,
        Expressions._is_null,
        Expressions._between,
        Expressions._in_list,
        Expressions._like,
        Expressions._is,
        Expressions._is_truth,
        Expressions._row_comparison,
        Expressions._exists,
        Expressions._in_subquery,
        Expressions._in_subquery,
        *_common("bool"),
    ],
    "nocase": [lambda maker, depth: None],
    "any": [lambda maker, depth: None],
}
