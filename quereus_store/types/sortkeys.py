"""Keys: stand-ins by which Python's own ``sorted``, ``dict`` and ``set`` follow SQL's order and equality.

Sorting, grouping, DISTINCT, joins and memory tables never call a comparator per pair of rows; they give C
code a key per row.  Two kinds of key exist, because equality is coarser than order for some types and
because a hash has no use for NULL placement:

* :func:`order_key`: ``sorted(values, key=...)`` gives SQL order.  NULLs come first unless asked otherwise.
* :func:`identity_key`: equal, hashable keys for exactly the values that SQL calls equal; NULL's key is
  ``None``.

For most declared types a value is its own key, and the recipe says so (``function`` is ``None``), so the
caller can use ``itemgetter`` or no key at all.  Every recipe also has a :class:`Template` to inline in
generated code.

For ``sorted(..., reverse=True)`` ask for ``descending=True``: the key then places NULLs so that they
still come first.  For a composite key whose parts differ in direction, :func:`reversed_key` gives a part
that sorts upside down.

NaN equals itself and stands above all numbers; :data:`NAN_KEY` is its key.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.collations import BINARY, Collation
from quereus_store.types.json import canonical_json, json_key
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    JSON,
    NULL,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    TIMESTAMP,
    LogicalType,
)
from quereus_store.types.templates import Template, global_name
from quereus_store.types.temporal.duration import timespan_key
from quereus_store.types.values import BLOB_RANK, NUMERIC_RANK, OBJECT_RANK, TEXT_RANK, Value

_Key = Callable[[Any], Any]


class _NaNKey(float):
    """The key of NaN: equal to itself, above every number, whichever side asks."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __lt__(self, other: object) -> bool:
        # What is no number (a bound beyond all keys) decides for itself.
        return False if isinstance(other, int | float) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self is other

    def __gt__(self, other: object) -> bool:
        return self is not other if isinstance(other, int | float) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return True

    def __neg__(self) -> float:
        return _NEGATED_NAN_KEY

    def __hash__(self) -> int:
        return 0x4E614E


class _NegatedNaNKey(_NaNKey):
    """The key of NaN in a descending part: below every number."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return self is not other if isinstance(other, int | float) else NotImplemented

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False if isinstance(other, int | float) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self is other

    __hash__ = _NaNKey.__hash__


NAN_KEY: float = _NaNKey("nan")
_NEGATED_NAN_KEY: float = _NegatedNaNKey("nan")


class Reversed:
    """A key that sorts upside down, for the descending parts of composite keys."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Reversed({self.key!r})"


@dataclass(frozen=True, slots=True)
class KeyRecipe:
    """How to make a key: a function (``None``: the value is its own key) and the same as inline source.

    ``plain_without_nan`` tells that only NaN stands between the value and being its own key.
    """

    function: _Key | None
    template: Template
    plain_without_nan: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the value is its own key."""
        return self.function is None

    def apply(self, value: Any) -> Any:
        """The key of one value."""
        return value if self.function is None else self.function(value)


_PLAIN = KeyRecipe(None, Template("{0}"))
_PLAIN_TYPES = frozenset((INTEGER, BOOLEAN, TIMESTAMP, BLOB, DATE, TIME, DATETIME))
_NEGATABLE_TYPES = frozenset((INTEGER, BOOLEAN, TIMESTAMP, REAL, NUMERIC, TIMESPAN))


def _recipe(template: Template, function: _Key | None = None) -> KeyRecipe:
    return KeyRecipe(function or template.compile(), template)


def number_key(value: Any) -> Any:
    """A number as its own key, NaN as :data:`NAN_KEY`; NULL stays ``None``."""
    return value if value == value else NAN_KEY


_NUMBER_SOURCE = "({0} if {0} == {0} else _NAN_KEY)"
_NUMBER = KeyRecipe(number_key, Template(_NUMBER_SOURCE, {"_NAN_KEY": NAN_KEY}), plain_without_nan=True)
_JSON = _recipe(Template("_json_key({0})", {"_json_key": json_key}), json_key)
_TIMESPAN = _recipe(Template("_timespan_key({0})", {"_timespan_key": timespan_key}), timespan_key)


# --- order ------------------------------------------------------------------------------------------------

_ANY_ORDER: Mapping[type, Callable[[Any], tuple[Any, ...]]] = MappingProxyType(
    {
        NoneType: lambda value: (0,),
        bool: lambda value: (NUMERIC_RANK, value),
        int: lambda value: (NUMERIC_RANK, value),
        float: lambda value: (NUMERIC_RANK, number_key(value)),
        str: lambda value: (TEXT_RANK, value),
        bytes: lambda value: (BLOB_RANK, value),
        list: lambda value: (OBJECT_RANK, canonical_json(value)),
        dict: lambda value: (OBJECT_RANK, canonical_json(value)),
    }
)


def any_order_key(value: Value) -> tuple[Any, ...]:
    """The order key of any value: storage class, then value; text in code-point order, NULL lowest."""
    return _ANY_ORDER[type(value)](value)


def _text_order(collation: Collation) -> KeyRecipe:
    if collation.is_binary:
        return _PLAIN
    if collation.template is not None:
        return _recipe(Template(collation.template), collation.normalizer)
    if collation.normalizer is not None and collation.order_preserving:
        name = global_name("_normalize_", collation.name)
        return _recipe(Template(f"{name}({{0}})", {name: collation.normalizer}), collation.normalizer)
    name = global_name("_order_", collation.name)
    key = functools.cmp_to_key(collation.comparator)
    return _recipe(Template(f"{name}({{0}})", {name: key}), key)


def _collated_any_order(collation: Collation) -> KeyRecipe:
    text_key = _text_order(collation).function

    def key(value: Value) -> tuple[Any, ...]:
        if type(value) is str and text_key is not None:
            return (TEXT_RANK, text_key(value))
        return any_order_key(value)

    name = "_any_order_key" if text_key is None else global_name("_any_order_", collation.name)
    return _recipe(Template(f"{name}({{0}})", {name: key}), key)


def _custom_order(logical_type: LogicalType) -> KeyRecipe:
    if logical_type.key is not None:
        key: _Key = logical_type.key
    elif logical_type.compare is not None:
        key = functools.cmp_to_key(logical_type.compare)
    else:
        return _collated_any_order(BINARY)
    name = global_name("_order_type_", logical_type.name)
    return _recipe(Template(f"{name}({{0}})", {name: key}), key)


def _value_order(logical_type: LogicalType, collation: Collation) -> KeyRecipe:
    """The order key of the non-NULL values of a type."""
    if logical_type in _PLAIN_TYPES:
        return _PLAIN
    if logical_type is TEXT:
        return _text_order(collation)
    if logical_type is REAL or logical_type is NUMERIC:
        return _NUMBER
    if logical_type is TIMESPAN:
        return _TIMESPAN
    if logical_type is JSON:
        return _JSON
    if logical_type is ANY:
        return _collated_any_order(collation)
    return _custom_order(logical_type)


def _with_nulls(recipe: KeyRecipe, nulls_low: bool) -> KeyRecipe:
    """Wrap the key of non-NULL values in a tuple that places NULL below or above them all."""
    present, absent = ("True", "(False,)") if nulls_low else ("False", "(True,)")
    source = f"(({present}, {recipe.template.source}) if {{0}} is not None else {absent})"
    return _recipe(Template(source, recipe.template.names))


@functools.lru_cache(maxsize=512)
def order_key(
    logical_type: LogicalType,
    nullable: bool,
    collation: Collation = BINARY,
    *,
    descending: bool = False,
    nulls_first: bool = True,
) -> KeyRecipe:
    """The key for ``sorted(values, key=recipe.function, reverse=descending)``.

    A recipe whose ``function`` is ``None`` means that values are their own keys.  NULLs come first in both
    directions unless ``nulls_first`` is false (types-and-values, section 10).
    """
    if logical_type is NULL:
        return _recipe(Template("0"))
    recipe = _value_order(logical_type, collation)
    nulls_low = nulls_first != descending
    if not nullable or (nulls_low and logical_type in (JSON, ANY)):
        return recipe
    return _with_nulls(recipe, nulls_low)


@functools.lru_cache(maxsize=512)
def reversed_key(
    logical_type: LogicalType, nullable: bool, collation: Collation = BINARY, *, nulls_first: bool = True
) -> KeyRecipe:
    """The key of a descending part within a composite key that sorts ascending."""
    if logical_type is NULL:
        return _recipe(Template("0"))
    recipe = _value_order(logical_type, collation)
    source, names = recipe.template.source, recipe.template.names
    if logical_type in _NEGATABLE_TYPES:
        turned = _recipe(Template(f"-{source}", names))
    else:
        turned = _recipe(Template(f"_Reversed({source})", {**names, "_Reversed": Reversed}))
    return _with_nulls(turned, nulls_first) if nullable else turned


# --- identity ---------------------------------------------------------------------------------------------

_SELF_IDENTICAL = frozenset((NoneType, bool, int, str, bytes))


def any_identity_key(value: Value) -> Any:
    """The identity of any value: numbers and booleans by number, text, blobs and documents apart."""
    if type(value) in _SELF_IDENTICAL:
        return value
    if type(value) is float:
        return number_key(value)
    return json_key(value)


def _any_identity(collation: Collation) -> KeyRecipe:
    if collation.is_binary:
        source = "({0} if type({0}) in _SELF_IDENTICAL else _any_identity_key({0}))"
        names = {"_SELF_IDENTICAL": _SELF_IDENTICAL, "_any_identity_key": any_identity_key}
        return _recipe(Template(source, names), any_identity_key)
    normalize = collation.require_normalizer()

    def key(value: Value) -> Any:
        return normalize(value) if type(value) is str else any_identity_key(value)

    name = global_name("_any_identity_", collation.name)
    return _recipe(Template(f"{name}({{0}})", {name: key}), key)


def _text_identity(collation: Collation) -> KeyRecipe:
    if collation.is_binary:
        return _PLAIN
    normalize = collation.require_normalizer()
    if collation.template is not None:
        return _recipe(Template(collation.template), normalize)
    name = global_name("_normalize_", collation.name)
    return _recipe(Template(f"{name}({{0}})", {name: normalize}), normalize)


def _custom_identity(logical_type: LogicalType) -> KeyRecipe:
    if logical_type.key is None and logical_type.compare is not None:
        raise sql_error(
            StatusCode.ERROR,
            f"semantic-ordering type {logical_type.name} cannot be hashed: it was registered without a key",
        )
    return _custom_order(logical_type) if logical_type.key is not None else _any_identity(BINARY)


@functools.lru_cache(maxsize=512)
def identity_key(logical_type: LogicalType, nullable: bool, collation: Collation = BINARY) -> KeyRecipe:
    """The hashable key for DISTINCT, GROUP BY, joins and UNIQUE (types-and-values, section 15).

    Keys are equal exactly for equal values, across the numeric types too; the key of NULL is ``None``.
    Raises ERROR where a collation has no normalizer or a registered type no key.
    """
    if logical_type in _PLAIN_TYPES or logical_type is NULL:
        return _PLAIN
    if logical_type is REAL or logical_type is NUMERIC:
        return _NUMBER
    if logical_type is ANY:
        return _any_identity(collation)
    if logical_type is TEXT:
        recipe = _text_identity(collation)
    elif logical_type is TIMESPAN:
        recipe = _TIMESPAN
    elif logical_type is JSON:
        recipe = _JSON
    else:
        recipe = _custom_identity(logical_type)
    if not nullable or recipe.is_plain:
        return recipe
    source = f"({recipe.template.source} if {{0}} is not None else None)"
    return _recipe(Template(source, recipe.template.names))
