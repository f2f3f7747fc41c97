"""The work of a process that is going to be killed: steps, and what the database holds after each.

A step is what becomes durable at once: one statement, one ``executemany`` or one transaction.  Each
step changes a :class:`Content` in plain Python and returns the statements that do the same in SQL,
so that writer and test can tell, from nothing but the number of steps, what must be there to the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from quereus_store import Connection, Error

OWNERS = ("ann", "bo", "cy", "di")
ACCOUNTS = 24
KEPT_STEPS = 40

SCHEMA = """
create table account (id integer primary key, owner text, balance integer, check (balance >= 0));
create index by_owner on account (owner, balance);
create table entry (
    step integer, line integer, account integer references account (id), amount integer,
    primary key (step, line)
);
create index by_account on entry (account, step);
create table document (name text primary key, body blob, step integer);
create unique index by_step on document (step, name);
create materialized view wealth as
    select owner, sum(balance) as total, count(*) as accounts from account group by owner;
"""


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with a tuple of parameters, or a list of such tuples; ``refused`` when it must fail."""

    sql: str
    parameters: Any = ()
    refused: bool = False

    def run(self, connection: Connection) -> None:
        """Run it; raises AssertionError when it should have been refused and was not."""
        many = isinstance(self.parameters, list)
        try:
            (connection.executemany if many else connection.execute)(self.sql, self.parameters)
        except Error:
            if not self.refused:
                raise
        else:
            assert not self.refused, self.sql


@dataclass(slots=True)
class Content:
    """The rows of all tables by key, and whether the index that comes and goes is there."""

    accounts: dict[int, tuple[str, int]] = field(default_factory=dict)
    entries: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    documents: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    indexed: bool = False

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of each table in the order of its key."""
        wealth = [
            (owner, sum(balances), len(balances))
            for owner in OWNERS
            if (balances := [balance for name, balance in self.accounts.values() if name == owner])
        ]
        return {
            "account": [(key, *row) for key, row in sorted(self.accounts.items())],
            "entry": [(*key, *row) for key, row in sorted(self.entries.items())],
            "document": [(key, *row) for key, row in sorted(self.documents.items())],
            "wealth": wealth,
        }


# --- the steps ------------------------------------------------------------------------------------------


def insert_account(content: Content, number: int, dice: Random) -> list[Statement]:
    """One autocommitted row: a new account, or another owner and more money for an old one."""
    key, owner, amount = dice.randrange(ACCOUNTS), dice.choice(OWNERS), dice.randrange(100)
    _, balance = content.accounts.get(key, ("", 0))
    content.accounts[key] = (owner, balance + amount)
    sql = (
        "insert into account values (?, ?, ?) "
        "on conflict (id) do update set owner = excluded.owner, balance = balance + excluded.balance"
    )
    return [Statement(sql, (key, owner, amount))]


def load_documents(content: Content, number: int, dice: Random) -> list[Statement]:
    """Many rows in one autocommitted step, with long keys and bodies larger than a page."""
    rows = [
        (
            f"{number:08d}-{line}-{'x' * dice.choice([0, 10, 700])}",
            dice.randbytes(dice.choice([5, 9000])),
            number,
        )
        for line in range(dice.randrange(1, 12))
    ]
    content.documents |= {name: (body, step) for name, body, step in rows}
    return [Statement("insert into document values (?, ?, ?)", rows)]


def transfer(content: Content, number: int, dice: Random) -> list[Statement]:
    """A transaction over two tables, with a savepoint undone and a statement refused in the middle."""
    if len(content.accounts) < 2:
        return insert_account(content, number, dice)
    source, target = dice.sample(sorted(content.accounts), 2)
    amount = content.accounts[source][1] // 3
    for key, change in ((source, -amount), (target, amount)):
        owner, balance = content.accounts[key]
        content.accounts[key] = (owner, balance + change)
    lines = [(number, 0, source, -amount), (number, 1, target, amount)]
    content.entries |= {(step, line): (account, change) for step, line, account, change in lines}
    move = "update account set balance = balance + ? where id = ?"
    return [
        Statement(move, (-amount, source)),
        Statement("savepoint doubt"),
        Statement("delete from entry"),
        Statement("update account set owner = 'nobody'"),
        Statement("rollback to doubt"),
        Statement("update account set balance = balance - 1000000", refused=True),
        Statement(move, (amount, target)),
        Statement("insert into entry values (?, ?, ?, ?)", lines),
    ]


def pay_interest(content: Content, number: int, dice: Random) -> list[Statement]:
    """One autocommitted statement over many rows, found through an index that it changes."""
    lucky = dice.choice(OWNERS)
    content.accounts = {
        key: (owner, balance + (owner == lucky)) for key, (owner, balance) in content.accounts.items()
    }
    return [Statement("update account set balance = balance + 1 where owner = ?", (lucky,))]


def forget_old(content: Content, number: int, dice: Random) -> list[Statement]:
    """A transaction that deletes ranges from two tables, and an account that nobody needs."""
    start = number - KEPT_STEPS
    content.entries = {key: row for key, row in content.entries.items() if key[0] >= start}
    content.documents = {name: row for name, row in content.documents.items() if row[1] >= start}
    used = {account for account, _ in content.entries.values()}
    unused = next((key for key in sorted(content.accounts) if key not in used), -1)
    content.accounts.pop(unused, None)
    return [
        Statement("delete from entry where step < ?", (start,)),
        Statement("delete from document where step < ?", (start,)),
        Statement("delete from account where id = ?", (unused,)),
    ]


def change_schema(content: Content, number: int, dice: Random) -> list[Statement]:
    """A transaction of a schema change and rows: an index comes or goes together with a document."""
    content.indexed = not content.indexed
    change = "create index by_amount on entry (amount)" if content.indexed else "drop index by_amount"
    name = f"{number:08d} {change}"
    content.documents[name] = (b"", number)
    return [Statement(change), Statement("insert into document values (?, x'', ?)", (name, number))]


STEPS: tuple[Callable[[Content, int, Random], list[Statement]], ...] = (
    insert_account,
    insert_account,
    load_documents,
    transfer,
    transfer,
    pay_interest,
    forget_old,
    change_schema,
)


def take_step(content: Content, number: int) -> list[Statement]:
    """Change the content as the step of this number does; its statements."""
    dice = Random(number)
    return dice.choice(STEPS)(content, number, dice)


def content_after(steps: int) -> Content:
    """What is there after the first steps."""
    content = Content()
    for number in range(steps):
        take_step(content, number)
    return content
