"""What other databases spell differently: their word, and what to write here.

Only data; :mod:`quereus_store.api.hints` looks things up in it when a statement has failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

FILES: Mapping[bytes, str] = MappingProxyType(
    {b"SQLite format 3\0": "SQLite", b"DUCK": "DuckDB", b"PAR1": "Parquet"}
)

CATALOGS = frozenset(
    {"sqlite_master", "sqlite_schema", "sqlite_temp_master", "information_schema", "pg_catalog"}
)
CATALOG_HINT = "the catalog is select * from schema(); a table's columns are select * from table_info('name')"

ROW_IDS = frozenset({"rowid", "oid", "_rowid_", "ctid"})


def _syntax(at: str, hint: str, after: str = "") -> tuple[re.Pattern[str], re.Pattern[str], str]:
    end = r"(?!\w)" if at[-1].isalnum() else ""
    return re.compile(f"(?:{at}){end}", re.IGNORECASE), re.compile(after, re.IGNORECASE), hint


WORDS = frozenset(
    {"select", "insert", "update", "delete", "create", "alter", "drop", "from", "where", "group", "having"}
)

_LISTS = "select * from schema() lists what there is, table_info('name') columns; in the shell .schema"

# What stands at the offending token, the hint, and what has to stand before it.
SYNTAX: tuple[tuple[re.Pattern[str], re.Pattern[str], str], ...] = (
    _syntax(
        r"without\s+rowid|strict", "leave it out: every table is keyed by its key, every typed column strict"
    ),
    _syntax(
        "autoincrement", "default (coalesce((select max(id) from t), 0) + mutation_ordinal()) numbers rows"
    ),
    _syntax("vacuum", "not needed: free pages are used again, and backup writes a compact copy"),
    _syntax(
        "reindex", "not needed: indexes are written in the commits of their rows; quereus check verifies them"
    ),
    _syntax("describe|show|summarize", _LISTS),
    _syntax("copy|load|install", "files are loaded and written by quereus import and quereus export"),
    _syntax("pivot|unpivot", "sum(x) filter (where …) makes a column of a value"),
    _syntax("merge", "insert … on conflict (…) do update set … is the upsert"),
    _syntax("truncate", "delete from t without WHERE"),
    _syntax(
        "limit|order", "no LIMIT here: where id in (select id … order by … limit n)", r"^\s*(update|delete)\b"
    ),
    _syntax(
        ".",
        "write a query: select * from table_info('name'), index_info('name') or foreign_key_info('name')",
        r"^\s*pragma\s+\w+\s*\(\s*$",
    ),
    _syntax("::", "cast(x as type) converts a value"),
    _syntax("~", "a regexp b, a like b and a glob b compare with patterns"),
    _syntax("temp|temporary", "create table temp.name (…) lives in memory until the database is closed"),
    _syntax(
        "trigger", "there are no triggers: CHECK, assertions and materialized views do their work", "create"
    ),
    _syntax("schema|database", "declare schema name { … } and apply schema name make one", "create"),
    _syntax(
        "function|procedure|type|sequence",
        "functions are Python's: create_function, create_aggregate",
        "create",
    ),
)

FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "last_insert_rowid": "insert … returning id tells the key",
        "total_changes": "connection.total_changes in Python; changes() for the last statement",
        "sqlite_version": "quereus_store.__version__ in Python",
        "version": "quereus_store.__version__ in Python",
        "max": "greatest(a, b) is the greater of several values",
        "min": "least(a, b) is the smaller of several values",
        "printf": "round(), lpad() and || put texts together; create_function adds one in Python",
        "format": "round(), lpad() and || put texts together; create_function adds one in Python",
        "unixepoch": "epoch_s(moment)",
        "now": "datetime('now'), or current_timestamp",
        "today": "date('now'), or current_date",
        "date_trunc": "date(day, 'start of month'), 'start of year', 'start of day'",
        "date_part": "extract(year from day)",
        "date_format": "strftime('%Y-%m', day)",
        "to_char": "strftime('%Y-%m', day)",
        "year": "extract(year from day)",
        "month": "extract(month from day)",
        "datediff": "julianday(b) - julianday(a) is days; b - a of two dates is a duration",
        "date_diff": "julianday(b) - julianday(a) is days; b - a of two dates is a duration",
        "date_add": "date(day, '+1 month'), or day + interval '3' day",
        "dateadd": "date(day, '+1 month'), or day + interval '3' day",
        "strpos": "instr(text, part)",
        "contains": "instr(text, part) > 0",
        "regexp_matches": "text regexp pattern",
        "regexp_like": "text regexp pattern",
        "if": "iif(condition, a, b)",
        "list": "json_group_array(x)",
        "array_agg": "json_group_array(x)",
        "count_if": "count(*) filter (where …)",
        "countif": "count(*) filter (where …)",
        "approx_count_distinct": "count(distinct x)",
        "try_cast": "cast(x as type) never fails",
        "read_csv": "files are loaded by quereus import",
        "read_csv_auto": "files are loaded by quereus import",
        "read_parquet": "files are loaded by quereus import",
        "read_json": "files are loaded by quereus import",
        "pragma_table_info": "table_info('name')",
        "pragma_index_list": "index_info('name')",
        "pragma_foreign_key_list": "foreign_key_info('name')",
        "uuid": "bind str(uuid.uuid4())",
        "gen_random_uuid": "bind str(uuid.uuid4())",
    }
)

_AT_CONNECT = "an option of connect: "

PRAGMAS: Mapping[str, str] = MappingProxyType(
    {
        "user_version": "declared schemas (diff, apply schema) need no version; else keep it in a table",
        "application_id": "keep it in a table",
        "journal_mode": "not needed: every commit is atomic, and readers never wait",
        "synchronous": _AT_CONNECT + "connect(path, synchronous='normal')",
        "busy_timeout": _AT_CONNECT + "connect(path, timeout=5.0)",
        "cache_size": _AT_CONNECT + "connect(path, cache_size=bytes)",
        "mmap_size": _AT_CONNECT + "connect(path, map_size=bytes)",
        "query_only": _AT_CONNECT + "connect(path, readonly=True)",
        "integrity_check": "quereus check FILE, or connection.database.check()",
        "quick_check": "quereus check FILE, or connection.database.check()",
        "foreign_key_check": "quereus check FILE, or connection.database.check()",
        "wal_checkpoint": "not needed: there is no log to put away",
        "optimize": "analyze",
        "table_info": "select * from table_info('name')",
        "table_list": "select * from schema()",
        "index_list": "select * from index_info('name')",
        "foreign_key_list": "select * from foreign_key_info('name')",
        "function_list": "select * from function_info()",
        "case_sensitive_like": "LIKE is case-sensitive, ILIKE is not",
    }
)

_AS_TEXT = "bind str(value); TEXT keeps it exactly"
_AS_ISO = "bind value.isoformat()"

CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "datetime": _AS_ISO,
        "date": _AS_ISO,
        "time": _AS_ISO,
        "timedelta": "bind whole seconds, or an ISO duration such as 'PT90M'",
        "Timestamp": _AS_ISO,
        "Decimal": _AS_TEXT,
        "UUID": _AS_TEXT,
        "PosixPath": _AS_TEXT,
        "bytearray": "bind bytes(value)",
        "memoryview": "bind bytes(value)",
        "set": "bind list(value), a JSON array; IN takes a list of parameters",
        "tuple": "bind list(value), a JSON array; IN takes a list of parameters",
        "ndarray": "bind value.tolist()",
        **dict.fromkeys(
            ("int64", "int32", "int16", "int8", "uint64", "uint32", "float32", "float16", "bool_", "str_"),
            "bind value.item()",
        ),
    }
)
