"""Functions of the program: from Python callables, classes and generators (functions, section 15).

What a function takes and gives is read from the callable: the number of parameters from its signature, the
result's type from the return annotation (``int`` is INTEGER, ``float`` REAL, ``str`` TEXT, ``bytes`` BLOB,
``bool`` BOOLEAN, ``dict`` and ``list`` JSON; anything else ANY), the columns of a table function from what it
is said to yield (``Iterator[Point]`` for a ``NamedTuple``, ``Iterator[tuple[int, str]]`` where names are
given).  Options override what is read.

NULLs are passed through to the callable.  A function returns what it declares: programs, keys and indexes are
made for that type, so another result is a MISMATCH.  Only numbers are taken as the declared kind of number
where that changes no value (1 as 1.0, ``True`` as 1).
Unless told otherwise a function is taken to be non-deterministic.
"""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.functions.registry import (
    AggregateFunction,
    Algebra,
    ResultColumn,
    ReturnType,
    ScalarFunction,
    TableFunction,
)
from quereus_store.types.conversion import converted, fits
from quereus_store.types.json import copy_document
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    INTEGER,
    JSON,
    NUMERIC,
    REAL,
    TEXT,
    LogicalType,
    type_from_name,
)
from quereus_store.types.values import Value, value_kind

_TYPE_OF_HINT: dict[Any, LogicalType] = {
    bool: BOOLEAN,
    int: INTEGER,
    float: REAL,
    str: TEXT,
    bytes: BLOB,
    dict: JSON,
    list: JSON,
}

DeclaredType = LogicalType | str | None


def _misuse(message: str) -> Error:
    return sql_error(StatusCode.MISUSE, f"registerFunction: {message}")


# --- reading declarations -----------------------------------------------------------------------------------


def type_of_hint(hint: Any) -> tuple[LogicalType, bool]:
    """The logical type that an annotation declares, and whether NULL is among its values."""
    if hint is inspect.Parameter.empty or hint is Any:
        return ANY, True
    if get_origin(hint) in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member is not type(None)]
        nullable = len(members) < len(get_args(hint))
        if len(members) == 1:
            return type_of_hint(members[0])[0], nullable
        return ANY, True
    found = _TYPE_OF_HINT.get(get_origin(hint) or hint)
    return (ANY, True) if found is None else (found, False)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        # A callable without readable annotations declares nothing.
        return {}


def _returned(function: Callable[..., Any], declared: DeclaredType) -> tuple[LogicalType, bool]:
    if isinstance(declared, LogicalType):
        return declared, True
    if declared is not None:
        return type_from_name(declared), True
    return type_of_hint(_hints(function).get("return", inspect.Parameter.empty))


def _arity(function: Callable[..., Any], arguments: int | None, leading: int = 0) -> tuple[int, int | None]:
    """How many SQL arguments a callable takes (-1: any); its ``leading`` parameters are not among them."""
    if arguments is not None:
        if type(arguments) is not int or arguments < -1:
            raise _misuse("schema.numArgs must be an integer >= -1")
        return (0, None) if arguments == -1 else (arguments, arguments)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return 0, None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [parameter for parameter in parameters if parameter.kind in kinds][leading:]
    required = sum(parameter.default is inspect.Parameter.empty for parameter in positional)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return required, None
    return required, len(positional)


def _name(function: Any, name: str | None) -> str:
    found = getattr(function, "__name__", None) if name is None else name
    if not isinstance(found, str) or not found.strip():
        raise _misuse("schema.name must be a non-empty string")
    return found


# --- scalar functions ---------------------------------------------------------------------------------------


_NUMBERS = frozenset({bool, int, float})
_NUMERIC = frozenset({INTEGER, REAL, NUMERIC, BOOLEAN})
_VALUES = frozenset({types.NoneType, bool, int, float, str, bytes})


def sql_value(result: Any) -> Value:
    """What a callable gave, as a value of the language; MISMATCH for a Python object that is none.

    Documents are copied; of subclasses (an ``IntEnum``) only the value counts.
    """
    kind = type(result)
    if kind in _VALUES:
        return result  # type: ignore[no-any-return]
    reason = kind.__name__
    if kind is list or kind is dict:
        try:
            return copy_document(result)  # type: ignore[no-any-return]
        except ValueError as failure:
            reason = str(failure)
    elif kind is bytearray or kind is memoryview:
        return bytes(result)
    elif isinstance(result, str):
        return str.__str__(result)
    elif isinstance(result, int):
        return int(result)
    elif isinstance(result, float):
        return float(result)
    elif isinstance(result, bytes):
        return bytes(result)
    raise sql_error(StatusCode.MISMATCH, f"expected SqlValue, got {reason}")


def _promised(returns: LogicalType, nullable: bool) -> Callable[[Any], Value]:
    """What a callable gave as a value of the type that it declares; MISMATCH for any other."""
    if returns is ANY:
        return sql_value

    def value_of(result: Any) -> Value:
        value = sql_value(result)
        if value is None:
            if nullable:
                return None
        elif fits(value, returns):
            return value
        elif type(value) in _NUMBERS and returns in _NUMERIC:
            number = converted(value, returns)
            if number == value:
                return number
        wanted = returns.name if nullable else f"{returns.name} NOT NULL"
        raise sql_error(StatusCode.MISMATCH, f"{wanted} is declared, but {_shown(value)} was returned")

    return value_of


def _shown(value: Value) -> str:
    return "NULL" if value is None else value_kind(value)


def _giving_values(
    function: Callable[..., Any], returns: LogicalType, nullable: bool
) -> Callable[..., Value]:
    """The callable, with what it gives as a value of the type that it declares."""
    value_of = _promised(returns, nullable)

    def call(*values: Any) -> Value:
        return value_of(function(*values))

    return call


def scalar_function_from(
    function: Callable[..., Value],
    name: str | None = None,
    *,
    arguments: int | None = None,
    deterministic: bool = False,
    returns: DeclaredType = None,
    infer_return_type: Callable[[Sequence[LogicalType]], LogicalType] | None = None,
    validate_arg_types: Callable[[Sequence[LogicalType]], bool] | None = None,
    hidden: bool = False,
    flags: int = 0,
) -> ScalarFunction:
    """A scalar function of a callable.

    ``arguments`` is the number of SQL arguments (-1: any), by default what the signature says.
    ``infer_return_type`` finds the result's type from the arguments'; only with it is ``validate_arg_types``
    asked, whose false makes the call a MISMATCH.  Raises MISUSE for declarations that make no sense.
    """
    if not callable(function):
        raise _misuse("schema.implementation must be a function")
    found = _name(function, name)
    minimum, maximum = _arity(function, arguments)
    result, nullable = _returned(function, returns)
    announced: ReturnType = infer_return_type or result
    return ScalarFunction(
        found,
        _giving_values(function, ANY if infer_return_type else result, nullable),
        minimum,
        maximum,
        announced,
        nullable=nullable or infer_return_type is not None,
        null_propagates=False,
        deterministic=deterministic,
        check=_argument_check(found, validate_arg_types) if infer_return_type else None,
        raises=True,
        hidden=hidden,
        flags=flags,
    )


def _argument_check(
    name: str, validate: Callable[[Sequence[LogicalType]], bool] | None
) -> Callable[[Sequence[LogicalType]], None] | None:
    if validate is None:
        return None

    def check(argument_types: Sequence[LogicalType]) -> None:
        if not validate(argument_types):
            raise sql_error(StatusCode.MISMATCH, f"Invalid argument types for function {name}")

    return check


# --- aggregates ---------------------------------------------------------------------------------------------


def _starter(initial: Any) -> Callable[[], Any]:
    """A new state for each group: of a callable its result, of a container a copy, else the value itself."""
    if callable(initial):
        return lambda: initial()
    if isinstance(initial, list | dict | set):
        return lambda: copy.copy(initial)
    return lambda: initial


def aggregate_function_from(
    step: Callable[..., Any],
    finish: Callable[[Any], Value],
    initial: Any = None,
    name: str | None = None,
    *,
    arguments: int | None = None,
    inverse: Callable[..., Any] | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    decode: Callable[[Any], Any] | None = None,
    decode_exact: bool = False,
    deterministic: bool = False,
    returns: DeclaredType = None,
    hidden: bool = False,
    flags: int = 0,
) -> AggregateFunction:
    """An aggregate of ``step(state, *arguments)`` and ``finish(state)``.

    ``inverse`` takes a row out of a state, ``merge`` joins two states; both only make windows and maintained
    views faster.  With ``merge`` the functions must be pure: a state given to them is used again.  ``decode``
    makes of a value that is not NULL a state that goes on like the one it is the value of, under ``inverse``
    too if ``decode_exact``: then a view needs nothing but what it stores.
    """
    _check_callable(step, finish)
    minimum, maximum = _arity(step, arguments, leading=1)
    result, nullable = _returned(finish, returns)
    start, finished = _starter(initial), _giving_values(finish, result, nullable)

    def evaluate(*columns: Sequence[Value]) -> Value:
        state = start()
        for row in _rows(columns, maximum):
            state = step(state, *row)
        return finished(state)

    return AggregateFunction(
        _name(step, name),
        evaluate,
        minimum,
        maximum,
        result,
        nullable=nullable,
        skips_nulls=False,
        ordered=merge is None and inverse is None,
        deterministic=deterministic,
        algebra=Algebra(
            start,
            _by_rows(step),
            finished,
            None if inverse is None else _by_rows(inverse),
            merge,
            decode=None if decode is None else lambda value: start() if value is None else decode(value),
            decode_exact=decode_exact,
            shares_state=merge is not None,
        ),
        raises=True,
        hidden=hidden,
        flags=flags,
    )


def _check_callable(step: object, finish: object) -> None:
    if not callable(step):
        raise _misuse(
            "schema must have implementation (scalar/TVF) or stepFunction+finalizeFunction (aggregate)"
        )
    if not callable(finish):
        raise _misuse("aggregate schema.finalizeFunction must be a function")


def _by_rows(step: Callable[..., Any]) -> Callable[[Any, tuple[Value, ...]], Any]:
    """The same step with the arguments as one row."""
    return lambda state, row: step(state, *row)


def _rows(columns: Sequence[Sequence[Value]], maximum: int | None) -> Iterator[tuple[Value, ...]]:
    if maximum == 0:
        return (() for _ in columns[0])
    return zip(*columns, strict=True)


def aggregate_class_from(
    factory: Callable[[], Any], name: str | None = None, *, arguments: int | None = None, **options: Any
) -> AggregateFunction:
    """An aggregate of a class with ``step(*arguments)`` and ``finalize()``, one instance per group.

    A class with ``inverse(*arguments)`` and ``value()`` (the result so far) can also slide over windows.
    """
    step, finalize = getattr(factory, "step", None), getattr(factory, "finalize", None)
    if not callable(step) or not callable(finalize):
        raise _misuse(
            "schema must have implementation (scalar/TVF) or stepFunction+finalizeFunction (aggregate)"
        )
    inverse = getattr(factory, "inverse", None)
    # What slides is read again and again; else a value is asked for once, at the end.
    value = getattr(factory, "value", None)
    reads = value if callable(inverse) and callable(value) else finalize
    if arguments is None:
        minimum, maximum = _arity(step, None, leading=1)
        arguments = minimum if minimum == maximum else -1

    def add(state: Any, *row: Value) -> Any:
        state.step(*row)
        return state

    def take_out(state: Any, *row: Value) -> Any:
        state.inverse(*row)
        return state

    def read(state: Any) -> Value:
        return reads(state)  # type: ignore[no-any-return]

    if options.get("returns") is None:
        options["returns"], _ = _returned(reads, None)
    return aggregate_function_from(
        add,
        read,
        factory,
        _name(factory, name),
        arguments=arguments,
        inverse=take_out if callable(inverse) else None,
        **options,
    )


# --- table functions ----------------------------------------------------------------------------------------


def table_function_from(
    function: Callable[..., Iterable[Sequence[Value]]],
    columns: Sequence[str | tuple[str, DeclaredType] | ResultColumn] | None = None,
    name: str | None = None,
    *,
    arguments: int | None = None,
    integrated: bool = False,
    deterministic: bool = False,
    hidden: bool = False,
    flags: int = 0,
) -> TableFunction:
    """A table function of a generator of rows.

    ``columns`` are names, (name, type) pairs or :class:`ResultColumn`; names alone take their types from the
    annotation of the rows, and without ``columns`` the annotation has to name a ``NamedTuple``.  Rows may
    be short (the rest is NULL) or long (the rest is cut).  An ``integrated`` function gets the statement's
    context first.
    """
    if not callable(function):
        raise _misuse("schema.implementation must be a function")
    declared = _declared_columns(function, columns)
    if not declared:
        raise _misuse("a table function must declare its columns")
    width = len(declared)
    promises = [_promised(column.type, column.nullable) for column in declared]
    minimum, maximum = _arity(function, arguments, leading=int(integrated))

    def rows(*values: Value) -> Iterator[tuple[Value, ...]]:
        for row in function(*values):
            fitted = tuple([value_of(value) for value_of, value in zip(promises, row, strict=False)])
            yield fitted if len(fitted) == width else fitted + (None,) * (width - len(fitted))

    return TableFunction(
        _name(function, name),
        rows,
        minimum,
        maximum,
        declared,
        deterministic=deterministic,
        needs_context=integrated,
        hidden=hidden,
        flags=flags,
    )


def _declared_columns(
    function: Callable[..., Any], columns: Sequence[str | tuple[str, DeclaredType] | ResultColumn] | None
) -> tuple[ResultColumn, ...]:
    names, hints = _row_hint(_hints(function).get("return"))
    if columns is None:
        columns = names
    types_of_hints = [type_of_hint(hint)[0] for hint in hints]
    if len(types_of_hints) != len(columns):
        types_of_hints = [ANY] * len(columns)
    return tuple(map(_column, columns, types_of_hints))


def _row_hint(hint: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The names and annotations of the members of the rows that an iterable is said to have."""
    members = get_args(hint)
    row = members[0] if members else None
    if isinstance(row, type) and issubclass(row, tuple) and hasattr(row, "_fields"):
        hints = _hints(row)
        return row._fields, tuple(hints.get(name, Any) for name in row._fields)
    values = get_args(row) if get_origin(row) is tuple else ()
    return (), () if Ellipsis in values else values


def _column(
    declared: str | tuple[str, DeclaredType] | ResultColumn, hinted: LogicalType = ANY
) -> ResultColumn:
    if isinstance(declared, ResultColumn):
        return declared
    if isinstance(declared, str):
        return ResultColumn(declared, hinted)
    name, logical_type = declared
    if isinstance(logical_type, LogicalType):
        return ResultColumn(name, logical_type)
    return ResultColumn(name, type_from_name(logical_type))
