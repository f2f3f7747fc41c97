"""PRAGMA: a session's options by name (functions, section 13).

``pragma NAME`` gives one row of the option's name, as asked, and its value;
``pragma NAME = V`` sets it; ``pragma database_list`` tells of the databases.
Whatever goes wrong reads ``Unknown pragma: NAME`` with the reason as its cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.results import Result
from quereus_store.execute.spilling.sizes import parse_size
from quereus_store.plan.expressions import Column
from quereus_store.plan.optimizer import rule_names
from quereus_store.schema.manager import MAIN
from quereus_store.sql import nodes
from quereus_store.types import ANY, INTEGER, TEXT, to_text
from quereus_store.types.json import parse_json, render_json

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_BOOLEANS = MappingProxyType(
    {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}
)


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its stored name, how a written value becomes a stored one and how that is shown."""

    name: str
    parse: Callable[[Session, str, Any], Any]
    show: Callable[[Any], Any] = lambda value: value


def _shown(value: Any) -> str:
    """A value as a message quotes it."""
    return "null" if value is None else to_text(value) or ""


def _boolean(session: Session, name: str, value: Any) -> bool:
    if isinstance(value, bool | int):
        return bool(value)
    found = _BOOLEANS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"Invalid boolean value for option {name}: {_shown(value)}")
    return found


def _number(session: Session, name: str, value: Any) -> float:
    try:
        if isinstance(value, str):
            value = float(value) if "." in value else int(value)
        return value + 0  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        raise ValueError(f"Invalid number value for option {name}: {_shown(value)}") from None


def _row_threshold(session: Session, name: str, value: Any) -> float:
    number = _number(session, name, value)
    if number < 0:
        raise ValueError(
            f"Invalid {name} {number}: must be a non-negative number (0 disables the size reject)"
        )
    return number


def _size(session: Session, name: str, value: Any) -> int:
    try:
        return parse_size(value)
    except ValueError as reason:
        raise ValueError(f"Invalid value for option {name}: {reason}") from None


def _choice(*choices: str) -> Callable[[Session, str, Any], str]:
    def parse(session: Session, name: str, value: Any) -> str:
        chosen = str(value).lower()
        if chosen not in choices:
            wanted = " or ".join(f'"{choice}"' for choice in choices)
            raise ValueError(f"Invalid {name} value: {_shown(value)}. Must be {wanted}")
        return chosen

    return parse


def _text(session: Session, name: str, value: Any) -> str:
    return to_text(value) or ""


class _WrittenList(tuple[str, ...]):
    """Names of a comma list, with the text that they were written in."""

    text: str


def _names(session: Session, name: str, value: Any) -> _WrittenList:
    text = ",".join(value) if isinstance(value, list | tuple) else _text(session, name, value)
    names = _WrittenList(part.strip() for part in text.split(",") if part.strip())
    names.text = text
    return names


def _show_names(names: tuple[str, ...]) -> str:
    return names.text if isinstance(names, _WrittenList) else ",".join(names)


def _rules(session: Session, name: str, value: Any) -> tuple[str, ...]:
    rules = _names(session, name, value)
    if rules == ("all",):
        return tuple(sorted(rule_names()))
    if not rule_names().issuperset(rules):
        raise ValueError(
            f"Invalid {name} value: {_shown(value)}. Rules are {', '.join(sorted(rule_names()))}"
        )
    return rules


def _collation(session: Session, name: str, value: Any) -> str:
    text = _text(session, name, value)
    if session.engine.collations.find(text) is None:
        raise ValueError(f"Unknown collation '{_shown(value)}' for {name}")
    return text


def _object(session: Session, name: str, value: Any) -> dict[str, Any]:
    try:
        parsed = parse_json(value if isinstance(value, str) else render_json(dict(value)))
    except (TypeError, ValueError):
        parsed = None
    if not isinstance(parsed, Mapping):
        raise ValueError(f"Invalid object value for option {name}: {_shown(value)}")
    return dict(parsed)


_OPTIONS = (
    Option("schema_path", _names, _show_names),
    Option("default_column_nullability", _choice("nullable", "not_null")),
    Option("default_vtab_module", _text),
    Option("default_vtab_args", _object, lambda value: render_json(dict(value))),
    Option("default_collation", _collation),
    Option("foreign_keys", _boolean),
    Option("nondeterministic_schema", _boolean),
    Option("ddl_transaction_policy", _choice("permissive", "strict")),
    Option("answer_from_views", _boolean),
    Option("materialized_view_rebuild_row_threshold", _row_threshold),
    Option("runtime_stats", _boolean),
    Option("validate_plan", _boolean),
    Option("trace_plan_stack", _boolean),
    Option("runtime_fuse_scalars", _boolean),
    Option("disabled_rules", _rules, ", ".join),
    Option("memory_limit", _size, lambda value: value or None),
)

_ALIASES = {
    "search_path": "schema_path",
    "column_nullability_default": "default_column_nullability",
    "nullable_default": "default_column_nullability",
    "fk_enforcement": "foreign_keys",
    "allow_nondeterministic_schema_expressions": "nondeterministic_schema",
    "runtime_metrics": "runtime_stats",
    "plan_validation": "validate_plan",
}

_BY_NAME: Mapping[str, Option] = MappingProxyType(
    {option.name: option for option in _OPTIONS}
    | {alias: option for alias, name in _ALIASES.items() for option in _OPTIONS if option.name == name}
)


def stored_name(name: str) -> str | None:
    """The name that an option is kept under, by that or an alias in any case; None for an unknown one."""
    option = _BY_NAME.get(name.lower())
    return None if option is None else option.name


def option_value(session: Session, name: str, value: Any) -> Any:
    """What an option of that stored name keeps for a value; raises ValueError for one it cannot take."""
    return _BY_NAME[name].parse(session, name, value)


def _database_list(session: Session) -> Result:
    """The databases by their number, name and file, as SQLite lists them: no file for one in memory."""
    engine = session.engine
    attached = engine.attachments.databases.values()
    rows = [
        (0, MAIN, engine.file),
        *((n, each.name, each.opened.file) for n, each in enumerate(attached, 2)),
    ]
    return Result((Column(1, "seq", INTEGER), Column(2, "name", TEXT), Column(3, "file", TEXT)), [rows])


def pragma(session: Session, statement: nodes.Pragma, parameters: Any) -> Result:
    """Show or set an option; raises ERROR ``Unknown pragma: NAME`` for whatever goes wrong."""
    name = statement.name.lower()
    if name == "database_list" and statement.value is None:
        return _database_list(session)
    option = _BY_NAME.get(name)
    if option is None:
        raise sql_error(StatusCode.ERROR, f"Unknown pragma: {name}", statement.position)
    if statement.value is None:
        columns = (Column(1, "name", TEXT), Column(2, "value", ANY))
        return Result(columns, [[(name, option.show(session.options[option.name]))]])
    try:
        value = option.parse(session, option.name, statement.value.value)
    except ValueError as reason:
        raise sql_error(StatusCode.ERROR, f"Unknown pragma: {name}", statement.position) from reason
    session.set_option(option.name, value)
    return Result()
