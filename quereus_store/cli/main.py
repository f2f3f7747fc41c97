"""Entry point of the ``quereus`` command.

``quereus FILE`` opens the shell; ``quereus COMMAND …`` runs one of the commands in the table below.
Every command module offers ``HELP``, ``configure(parser)`` and ``run(options) -> int``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType, ModuleType

from quereus_store.cli.commands import (
    apply,
    backup,
    bench,
    check,
    demo,
    diff,
    dump,
    explain,
    export,
    load,
    refresh,
    run,
    shell,
)
from quereus_store.cli.diagnostics import (
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    CommandError,
    report,
)
from quereus_store.errors import Error

COMMANDS: Mapping[str, ModuleType] = MappingProxyType(
    {
        "shell": shell,
        "run": run,
        "import": load,
        "export": export,
        "dump": dump,
        "backup": backup,
        "diff": diff,
        "apply": apply,
        "explain": explain,
        "check": check,
        "refresh": refresh,
        "bench": bench,
        "demo": demo,
    }
)


def build_parser() -> argparse.ArgumentParser:
    """The argument parser with one sub-parser a command."""
    parser = argparse.ArgumentParser(
        prog="quereus",
        description="An embedded SQL database on LMDB or LevelDB.",
        epilog="`quereus FILE` is short for `quereus shell FILE`.",
    )
    parser.add_argument("--version", action="version", version=f"quereus {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.configure(command)
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = build_parser().parse_args(_with_command(words))
    _let_all_text_through()
    try:
        with _integers_of_any_length():
            status: int = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader (a pager, `head`) has seen enough; nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_REFUSED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (Error, CommandError, OSError) as error:
        report(error, sys.stderr)
        return EXIT_REFUSED


def _let_all_text_through() -> None:
    """Escape what an encoding cannot spell, as unpaired surrogates, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def _integers_of_any_length() -> Iterator[None]:
    """Python refuses to spell integers of thousands of digits, which a table may hold."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


def _with_command(words: list[str]) -> list[str]:
    """Put ``shell`` in front of a command line that names no command."""
    asks_for_help = bool(words) and words[0] in ("-h", "--help", "--version")
    if asks_for_help or any(word in COMMANDS for word in words[:1]):
        return words
    return ["shell", *words]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("quereus-store")
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
