"""The function registry: what a call in SQL means.

Three kinds of function, each an immutable value:

* :class:`ScalarFunction`: one value from some values;
* :class:`AggregateFunction`: one value from a group's rows.  Its heart is
  ``evaluate``, which takes the whole column of arguments of a group as a list,
  so that built-ins are one C loop; an incremental form (``algebra``) is what
  window frames and maintained views use;
* :class:`TableFunction`: rows from some values.

A :class:`FunctionRegistry` maps (name, number of arguments) to a function.
Lookups fall back from the exact count to variadic ones.  Registries layer: a
database's registry has the built-ins as its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.types.logical import LogicalType

Value = Any
ReturnType = LogicalType | Callable[[Sequence[LogicalType]], LogicalType]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A scalar function.

    ``null_propagates``: any NULL argument makes the result NULL, and ``call`` is never asked.
    ``nullable``: the call may also give NULL for arguments that are not NULL (without ``null_propagates``:
    for any arguments).  ``inline`` maps a tuple of argument type names (``None`` = any number) to a Python
    expression over ``{0}``, ``{1}``, ... that is equivalent for NOT NULL arguments of these types;
    generated code uses it instead of a call.  A template names each argument at most once, never raises
    and never gives NULL.  ``needs_context``: ``call`` takes the statement's runtime context first.
    ``check`` may refuse argument types at prepare time.  ``raises``: the call may fail for some values, so
    compiled code calls :func:`guarded` instead, which names the function and the place in the error.
    ``hidden`` keeps a function out of ``schema()``; ``flags`` are further bits that ``function_info``
    shows. ``specialize`` gives the call for arguments of these static types where they change the meaning
    (a JSON string is no JSON text); use :func:`call_for`.  ``with_constants`` may give a quicker call that
    takes the first argument alone (of this static type, NULL included), where the others are these constants.
    """

    name: str
    call: Callable[..., Value]
    minimum: int
    maximum: int | None
    returns: ReturnType
    nullable: bool = True
    null_propagates: bool = True
    deterministic: bool = True
    needs_context: bool = False
    inline: Mapping[tuple[str, ...], str] | None = field(default=None, compare=False)
    check: Callable[[Sequence[LogicalType]], None] | None = None
    raises: bool = False
    hidden: bool = False
    flags: int = 0
    specialize: Callable[[Sequence[LogicalType]], Callable[..., Value]] | None = None
    with_constants: Callable[[LogicalType, Sequence[Value]], Callable[[Value], Value] | None] | None = None


@dataclass(frozen=True, slots=True)
class Decomposition:
    """An aggregate as a function of others (functions, section 16).

    ``partials`` names the siblings, each over the same argument or over ``*``;
    ``combine`` makes this result of theirs, in that order.
    """

    partials: tuple[tuple[str, bool], ...]
    combine: Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Algebra:
    """How an aggregate can be kept up to date.

    ``start`` makes an empty state; ``add`` and ``remove`` return the state with
    a row's arguments (a tuple) counted in or out; ``merge`` joins two states;
    ``finish`` gives the value.  ``remove`` and ``merge`` are None where the
    aggregate has none.  The built-ins' states are immutable values, so a state
    may be kept and shared; one that a program's step function changes in place
    (``shares_state`` False) must not be used again after ``add``.

    ``total`` makes the state of a whole column, its only argument, in one C loop (``count(*)`` gets the
    rows): what many ``add`` would make of it.

    ``decode`` makes a state of a finished value that behaves like the original
    under further ``add`` and ``merge``; under ``remove`` too if ``decode_exact``.
    """

    start: Callable[[], Any]
    add: Callable[[Any, tuple[Value, ...]], Any]
    finish: Callable[[Any], Value]
    remove: Callable[[Any, tuple[Value, ...]], Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None
    total: Callable[[Sequence[Any]], Any] | None = None
    decode: Callable[[Value], Any] | None = None
    decode_exact: bool = False
    decompose: Decomposition | None = None
    shares_state: bool = True


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function.

    ``evaluate`` takes one list per argument, all of the group's length and in
    row order.  A call without arguments (``count(*)``) gets one list all the
    same: the group's rows.  ``skips_nulls``: rows whose first argument is NULL
    are left out before ``evaluate`` sees them; ``algebra`` does that itself.  An
    aggregate over no rows gives ``evaluate`` of empty lists.
    ``ordered`` tells that the result depends on the order of the rows.
    ``collated`` (min, max): ``evaluate`` takes a keyword ``key``, the order key
    of the type and collation of the argument at ``compared`` (None: values order themselves), and
    ``keyed_algebra`` makes the algebra for such a key; ``algebra`` is that for None.
    ``over_floats`` is ``evaluate`` for a column of nothing but floats; what it gives is finite only if all of
    these are.
    ``raises``, ``hidden``, ``flags``: as for scalar functions.
    """

    name: str
    evaluate: Callable[..., Value]
    minimum: int
    maximum: int | None
    returns: ReturnType
    nullable: bool = True
    skips_nulls: bool = True
    ordered: bool = False
    collated: bool = False
    compared: int = 0
    deterministic: bool = True
    algebra: Algebra | None = None
    check: Callable[[Sequence[LogicalType]], None] | None = None
    keyed_algebra: Callable[[Callable[[Value], Any] | None], Algebra] | None = None
    over_floats: Callable[[list[Any]], Value] | None = None
    raises: bool = False
    hidden: bool = False
    flags: int = 0


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a table function."""

    name: str
    type: LogicalType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A table-valued function; ``call`` yields row tuples.

    ``needs_context``: ``call`` takes the statement's runtime context (with
    ``.catalog``, ``.registry`` and ``.options``) first.  Failures go through
    :func:`guarded_rows`.  ``minimum`` 0 with ``maximum`` None also stands for
    functions that count their arguments themselves, to say what they want.
    ``specialize``: as for scalar functions.
    """

    name: str
    call: Callable[..., Iterable[tuple[Value, ...]]]
    minimum: int
    maximum: int | None
    columns: tuple[ResultColumn, ...]
    deterministic: bool = True
    needs_context: bool = False
    hidden: bool = False
    flags: int = 0
    specialize: Callable[[Sequence[LogicalType]], Callable[..., Iterable[tuple[Value, ...]]]] | None = None


Function = ScalarFunction | AggregateFunction | TableFunction


class FunctionRegistry:
    """Functions by name and number of arguments."""

    def __init__(self, functions: Iterable[Function] = (), parent: FunctionRegistry | None = None) -> None:
        self._parent = parent
        self._functions: dict[str, list[Function]] = {}
        self._frozen = False
        for function in functions:
            self.register(function)

    def freeze(self) -> None:
        """Allow no further change; layer another registry over this one instead."""
        self._frozen = True

    def register(self, function: Function) -> None:
        """Add a function; one of the same name and arity is replaced, whatever its kind.

        Raises MISUSE on a frozen registry.
        """
        if self._frozen:
            raise sql_error(StatusCode.MISUSE, "the built-in functions cannot be changed in place")
        same_name = self._functions.setdefault(function.name.lower(), [])
        same_name[:] = [
            f for f in same_name if (f.minimum, f.maximum) != (function.minimum, function.maximum)
        ]
        same_name.append(function)

    def unregister(self, name: str, arguments: int | None) -> bool:
        """Forget this layer's function of that name and arity (None: variadic); tells if there was one."""
        same_name = self._functions.get(name.lower(), [])
        kept = [f for f in same_name if (f.minimum, f.maximum) != _arity(arguments)]
        found = len(kept) < len(same_name)
        same_name[:] = kept
        return found

    def find(self, name: str, arguments: int) -> Function | None:
        """The function for a call: of exactly that arity first, then the narrowest range that allows it.

        Where two layers have equally fitting functions, the upper one's is meant.
        """
        folded = name.lower()
        fitting: list[Function] = []
        layer: FunctionRegistry | None = self
        while layer is not None:
            fitting += [
                f
                for f in layer._functions.get(folded, ())
                if f.minimum <= arguments and (f.maximum is None or arguments <= f.maximum)
            ]
            layer = layer._parent
        return min(fitting, key=_width) if fitting else None

    def knows(self, name: str) -> bool:
        """Whether any function has this name."""
        return bool(self._functions.get(name.lower())) or (
            self._parent is not None and self._parent.knows(name)
        )

    def __iter__(self) -> Iterator[Function]:
        """All functions that a call can reach: the lower layer's that are not replaced, then this one's."""
        for function in self._parent or ():
            same_name = self._functions.get(function.name.lower(), ())
            arity = (function.minimum, function.maximum)
            if all((f.minimum, f.maximum) != arity for f in same_name):
                yield function
        for same_name in self._functions.values():
            yield from same_name


def _arity(arguments: int | None) -> tuple[int, int | None]:
    return (0, None) if arguments is None else (arguments, arguments)


def _width(function: Function) -> float:
    if function.maximum is None:
        return float("inf")
    return function.maximum - function.minimum


def function_failed(name: str, error: BaseException, position: SourcePosition | None = None) -> Error:
    """The error for a call that raised: ``Function NAME failed: MSG``, the original as its cause."""
    return _failed("Function", name, error, position)


def _failed(what: str, name: str, error: BaseException, position: SourcePosition | None) -> Error:
    reason = error.message if isinstance(error, Error) else str(error) or type(error).__name__
    failure = sql_error(StatusCode.ERROR, f"{what} {name.lower()} failed: {reason}", position)
    failure.__cause__ = error
    return failure


def call_for(function: ScalarFunction, types: Sequence[LogicalType]) -> Callable[..., Value]:
    """The Python callable for a call with arguments of these static types."""
    return function.specialize(types) if function.specialize else function.call


def guarded(
    function: ScalarFunction,
    position: SourcePosition | None = None,
    types: Sequence[LogicalType] | None = None,
) -> Callable[..., Value]:
    """The callable of a function with its failures told as errors of the function at that place."""
    call, name = function.call if types is None else call_for(function, types), function.name

    def guarded_call(*arguments: Value) -> Value:
        try:
            return call(*arguments)
        except Exception as error:
            raise function_failed(name, error, position) from error

    return guarded_call


def guarded_aggregate(
    function: AggregateFunction, position: SourcePosition | None = None
) -> AggregateFunction:
    """An aggregate with its failures told as errors of the function at that place."""
    if not function.raises:
        return function
    name, algebra = function.name, function.algebra

    def guard(call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded_call(*arguments: Any, **options: Any) -> Any:
            try:
                return call(*arguments, **options)
            except Exception as error:
                raise function_failed(name, error, position) from error

        return guarded_call

    if algebra is not None:
        steps = ("start", "add", "finish", "remove", "merge", "total", "decode")
        present: dict[str, Any] = {
            step: guard(call) for step in steps if (call := getattr(algebra, step)) is not None
        }
        algebra = replace(algebra, **present)
    return replace(function, evaluate=guard(function.evaluate), algebra=algebra)


def guarded_rows(
    function: TableFunction,
    position: SourcePosition | None = None,
    types: Sequence[LogicalType] | None = None,
) -> Callable[..., Iterator[tuple[Value, ...]]]:
    """The function as an iterator of rows whose failures read ``Table-valued function NAME failed: MSG``."""
    call, name = function.call, function.name
    if types is not None and function.specialize is not None:
        call = function.specialize(types)

    def guarded_call(*arguments: Value) -> Iterator[tuple[Value, ...]]:
        try:
            yield from call(*arguments)
        except Exception as error:
            raise _failed("Table-valued function", name, error, position) from error

    return guarded_call
