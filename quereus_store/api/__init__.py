"""The public face: ``connect``, connections, cursors, databases, rows."""

from quereus_store.api.connection import Connection, connect
from quereus_store.api.cursor import Cursor
from quereus_store.api.database import Database
from quereus_store.api.rows import Row, dict_row
from quereus_store.plan.tree import PlanStep

__all__ = ["Connection", "Cursor", "Database", "PlanStep", "Row", "connect", "dict_row"]
