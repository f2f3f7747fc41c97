"""What ANALYZE found out about tables, kept under their store ids.

A record is a plain dictionary (row count, per column the numbers of distinct values and
NULLs, least and greatest value, a histogram); its values go through the row codec, so a date, a
blob or an integer of any size comes back as it was.  Filed under the store id, it needs no
attention when a table is renamed.

Chapter: store-and-modules, section 5.
"""

from __future__ import annotations

from typing import Any

from quereus_store.backends.contract import ReadTransaction, WriteTransaction
from quereus_store.catalog.layout import statistics_key
from quereus_store.codec import row_decoder, row_encoder
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.schema.objects import TableSchema


def read_statistics(transaction: ReadTransaction, table: TableSchema) -> dict[str, Any] | None:
    """The record of a table, or None; CORRUPT for bytes that are no record."""
    value = transaction.get(statistics_key(table.storage_id))
    if value is None:
        return None
    decode, _ = row_decoder(has_documents=True)
    try:
        (record,) = decode(value)
        if isinstance(record, dict):
            return record
    except (Error, ValueError):
        pass
    raise sql_error(StatusCode.CORRUPT, f"the statistics of table {table.qualified_name} are corrupt")


def write_statistics(
    transaction: WriteTransaction, table: TableSchema, record: dict[str, Any] | None
) -> None:
    """Keep a record; None removes it."""
    key = statistics_key(table.storage_id)
    if record is None:
        transaction.delete(key)
    else:
        encode, _ = row_encoder()
        transaction.put(key, encode((record,)))
