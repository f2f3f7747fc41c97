"""corr, covar_pop, covar_samp and the regr_ family: how two columns of numbers go together (SQL:2003).

``f(y, x)``: the first argument depends on the second.  A row counts if both are numbers.  As for variances
everything is made of sums that are kept exactly, as integers of a small unit, and rounded once when it is
read.  With an infinity or a NaN among the numbers there is no result but a count: NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import NamedTuple

from quereus_store.functions.aggregates.exact import UNIT, scaled_number
from quereus_store.functions.aggregates.statistics import as_integers
from quereus_store.functions.arguments import NUMBER_CLASSES, Number, number_of
from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.logical import INTEGER, REAL
from quereus_store.types.values import Value, int_quotient


class Sums(NamedTuple):
    """What all of these functions are made of.

    Pairs counted, sums of x, y, their squares and products in units of which ``x_unit`` and ``y_unit`` make
    1, and how many pairs have a number that is not finite.
    """

    pairs: int = 0
    x: int = 0
    y: int = 0
    xx: int = 0
    xy: int = 0
    yy: int = 0
    odd: int = 0
    x_unit: int = UNIT
    y_unit: int = UNIT

    @property
    def x_spread(self) -> int:
        """The count times the sum of squared distances of x from its mean."""
        return self.pairs * self.xx - self.x * self.x

    @property
    def y_spread(self) -> int:
        """The same of y."""
        return self.pairs * self.yy - self.y * self.y

    @property
    def together(self) -> int:
        """The count times the sum of products of both distances."""
        return self.pairs * self.xy - self.x * self.y


_START = Sums()


def _number(value: Value) -> Number | None:
    return value if type(value) in NUMBER_CLASSES else number_of(value)  # type: ignore[return-value]


def _is_finite(number: Number) -> bool:
    return type(number) is not float or math.isfinite(number)


def _counted(state: Sums, row: tuple[Value, ...], sign: int) -> Sums:
    y, x = _number(row[0]), _number(row[1])
    if x is None or y is None:
        return state
    if not (_is_finite(x) and _is_finite(y)):
        return state._replace(pairs=state.pairs + sign, odd=state.odd + sign)
    x, y = scaled_number(x), scaled_number(y)
    return Sums(
        state.pairs + sign,
        state.x + sign * x,
        state.y + sign * y,
        state.xx + sign * x * x,
        state.xy + sign * x * y,
        state.yy + sign * y * y,
        state.odd,
    )


def _add(state: Sums, row: tuple[Value, ...]) -> Sums:
    return _counted(state, row, 1)


def _remove(state: Sums, row: tuple[Value, ...]) -> Sums:
    return _counted(state, row, -1)


def _merge(left: Sums, right: Sums) -> Sums:
    return Sums(*map(int.__add__, left[:7], right[:7]))


def _of_columns(ys: Sequence[Value], xs: Sequence[Value]) -> Sums:
    """The sums of whole columns, in units that fit the numbers."""
    if not set(map(type, ys)) | set(map(type, xs)) <= NUMBER_CLASSES:
        pairs = [(y, x) for y, x in zip(map(_number, ys), map(_number, xs), strict=True)]
        pairs = [pair for pair in pairs if None not in pair]
        ys, xs = [y for y, _ in pairs], [x for _, x in pairs]
    if not ys:
        return _START
    scaled_x, scaled_y = as_integers(xs), as_integers(ys)  # type: ignore[arg-type]
    if scaled_x is None or scaled_y is None:
        return Sums(pairs=len(ys), odd=1)
    (x, x_unit), (y, y_unit) = scaled_x, scaled_y
    xx, xy, yy = (sum(map(mul, left, right)) for left, right in ((x, x), (x, y), (y, y)))
    return Sums(len(x), sum(x), sum(y), xx, xy, yy, 0, x_unit, y_unit)


# --- the functions, of at least one pair of finite numbers --------------------------------------------------


def _corr(sums: Sums) -> float | None:
    spread = sums.x_spread * sums.y_spread
    if not spread:
        return None
    size = math.sqrt(int_quotient(sums.together**2, spread))
    return -size if sums.together < 0 else size


def _covar_pop(sums: Sums) -> float | None:
    return int_quotient(sums.together, sums.pairs**2 * sums.x_unit * sums.y_unit)


def _covar_samp(sums: Sums) -> float | None:
    if sums.pairs < 2:
        return None
    return int_quotient(sums.together, sums.pairs * (sums.pairs - 1) * sums.x_unit * sums.y_unit)


def _slope(sums: Sums) -> float | None:
    spread = sums.x_spread
    return int_quotient(sums.together * sums.x_unit, spread * sums.y_unit) if spread else None


def _intercept(sums: Sums) -> float | None:
    spread = sums.x_spread
    return int_quotient(sums.y * sums.xx - sums.x * sums.xy, spread * sums.y_unit) if spread else None


def _r2(sums: Sums) -> float | None:
    if not sums.x_spread:
        return None
    spread = sums.x_spread * sums.y_spread
    return int_quotient(sums.together**2, spread) if spread else 1.0


_FUNCTIONS: dict[str, Callable[[Sums], float | None]] = {
    "corr": _corr,
    "covar_pop": _covar_pop,
    "covar_samp": _covar_samp,
    "regr_slope": _slope,
    "regr_intercept": _intercept,
    "regr_r2": _r2,
    "regr_avgx": lambda sums: int_quotient(sums.x, sums.pairs * sums.x_unit),
    "regr_avgy": lambda sums: int_quotient(sums.y, sums.pairs * sums.y_unit),
    "regr_sxx": lambda sums: int_quotient(sums.x_spread, sums.pairs * sums.x_unit**2),
    "regr_syy": lambda sums: int_quotient(sums.y_spread, sums.pairs * sums.y_unit**2),
    "regr_sxy": lambda sums: int_quotient(sums.together, sums.pairs * sums.x_unit * sums.y_unit),
}


def _of_two(name: str, function: Callable[[Sums], float | None]) -> AggregateFunction:
    def finish(sums: Sums) -> float | None:
        return function(sums) if sums.pairs and not sums.odd else None

    def evaluate(ys: Sequence[Value], xs: Sequence[Value]) -> float | None:
        return finish(_of_columns(ys, xs))

    algebra = Algebra(lambda: _START, _add, finish, _remove, _merge)
    return AggregateFunction(name, evaluate, 2, 2, REAL, algebra=algebra)


def _count_of(sums: Sums) -> int:
    return sums.pairs


REGRESSION = (
    *(_of_two(name, function) for name, function in _FUNCTIONS.items()),
    AggregateFunction(
        "regr_count",
        lambda ys, xs: _of_columns(ys, xs).pairs,
        2,
        2,
        INTEGER,
        nullable=False,
        algebra=Algebra(lambda: _START, _add, _count_of, _remove, _merge),
    ),
)
