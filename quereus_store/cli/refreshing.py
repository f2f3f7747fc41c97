"""Refreshing all materialized views, told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from quereus_store.errors import Error

if TYPE_CHECKING:
    from quereus_store import Connection


def refresh_views(connection: Connection, stream: TextIO) -> bool:
    """Refresh every view, sources first, and print what became of each; true when none failed."""
    failed: dict[str, str] = {}
    try:
        refreshed = list(map(str, connection.refresh_all()))
    except Error as error:
        if "failed" not in error.details:
            raise
        refreshed, failed = error.details["refreshed"], error.details["failed"]
    for name in refreshed:
        print(f"{name}: refreshed", file=stream)
    for name, message in failed.items():
        print(f"{name}: failed: {message}", file=stream)
    if not refreshed and not failed:
        print("There are no materialized views.", file=stream)
    return not failed
