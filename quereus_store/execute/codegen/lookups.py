"""What generated code calls to look rows up by keys: one key, several, ranges, and the keys of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any

from quereus_store.errors import Error
from quereus_store.modules.contract import AccessPath, Batch, Row, Table

KeyIdentity = Callable[[tuple[Any, ...]], Any] | None


def point_row(table: Table, transaction: Any, key: tuple[Any, ...]) -> list[Row]:
    """The row of a primary key, if there is one, as a batch."""
    row = table.point(transaction, key)
    return [] if row is None else [row]


def _different(keys: Sequence[tuple[Any, ...]], identity: KeyIdentity) -> list[tuple[Any, ...]]:
    """Keys without NULL, each once; ``identity`` is the same for keys that are equal but not alike."""
    present = [key for key in keys if None not in key]
    return list(
        dict.fromkeys(present) if identity is None else {identity(key): key for key in present}.values()
    )


def foreign_identity(value: Any, identity: Callable[[Any], Any]) -> Any:
    """The identity of a key that may be of another type than its column; such a one is itself."""
    try:
        return identity(value)
    except (TypeError, Error):
        return type(value), repr(value)


def points_rows(
    table: Table,
    transaction: Any,
    keys: Sequence[tuple[Any, ...]],
    descending: bool,
    identity: KeyIdentity = None,
) -> Iterable[Batch]:
    """The rows of several primary keys, each once, in key order."""
    wanted = _different(keys, identity)
    try:
        wanted.sort(reverse=descending)
    except TypeError:
        wanted.sort(key=repr)
    rows = [row for row in table.points(transaction, wanted) if row is not None]
    return (rows,) if rows else ()


def range_rows(
    table: Table, transaction: Any, path: AccessPath, prefix: tuple[Any, ...], lower: Any, upper: Any
) -> Iterable[Batch]:
    """The rows of a key range."""
    return table.range(transaction, path, prefix, lower, upper)


def unless_null(compared: tuple[Any, ...], access: Callable[..., Any], *arguments: Any) -> Any:
    """An access, unless a value that it compares with is NULL: then nothing is found."""
    return () if None in compared else access(*arguments)


def ranges_rows(
    table: Table,
    transaction: Any,
    path: AccessPath,
    prefixes: Sequence[tuple[Any, ...]],
    identity: KeyIdentity = None,
) -> Iterable[Batch]:
    """The rows of several key prefixes, each prefix once."""
    return [rows for rows in table.ranges(transaction, path, _different(prefixes, identity)) if rows]


def ranges_of_each(
    table: Table, transaction: Any, path: AccessPath, prefixes: list[tuple[Any, ...]]
) -> Sequence[Sequence[Row]]:
    """The rows of each key prefix.  Equal ones are looked up once, so that no row is read twice."""
    try:
        different = list(dict.fromkeys(prefixes))
    except TypeError:
        # A document has no hash.
        return table.ranges(transaction, path, prefixes)
    if len(different) == len(prefixes):
        return table.ranges(transaction, path, prefixes)
    found = dict(zip(different, table.ranges(transaction, path, different), strict=True))
    return [found[prefix] for prefix in prefixes]


def present_keys(find: Callable[..., Sequence[Any]], missing: Any, *arguments: Any) -> Sequence[Any]:
    """What ``find`` finds for each of its last argument, keys; ``missing`` for those with a NULL.

    In a key NULL is a value like any other, but under ``=`` it matches nothing.
    """
    *others, keys = arguments
    present = [None not in key for key in keys]
    if all(present):
        return find(*others, keys)
    found = iter(find(*others, list(compress(keys, present))))
    return [next(found) if there else missing for there in present]
