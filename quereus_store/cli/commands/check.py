"""``quereus check FILE``: verify a database.

The check runs in a process of its own, because LMDB does not survive every damaged page: where it ends the
process that reads one, the command still says what is wrong.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile

from quereus_store.cli.connecting import add_file_argument, open_database
from quereus_store.cli.diagnostics import EXIT_DONE, EXIT_REFUSED, CommandError

HELP = "verify rows against schema, keys, indexes and references"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_file_argument(parser)
    parser.add_argument("--in-process", action="store_true", help="check without a process of its own")


def run(options: argparse.Namespace) -> int:
    """Check the file; the exit status tells whether it is in order."""
    return _check(options) if options.in_process else _check_in_child(options)


def _check(options: argparse.Namespace) -> int:
    from quereus_store.cli.checking import check_database

    with open_database(options.file, options.backend, must_exist=True) as connection:
        return EXIT_DONE if check_database(connection, sys.stdout) else EXIT_REFUSED


def _check_in_child(options: argparse.Namespace) -> int:
    """Pass on what the child says; raises CommandError when a signal ended it."""
    backend = ["--backend", options.backend] if options.backend else []
    command = [
        sys.executable,
        "-m",
        "quereus_store.cli",
        "check",
        "--in-process",
        *backend,
        "--",
        options.file,
    ]
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                print(line, end="")
        errors.seek(0)
        said = errors.read()
    if child.returncode < 0:
        last_words = said.strip().rpartition("\n")[2] or signal.strsignal(-child.returncode)
        raise CommandError(
            f"{options.file}: the file is damaged: reading a page of it ended the process ({last_words})"
        )
    print(said, end="", file=sys.stderr)
    return child.returncode
