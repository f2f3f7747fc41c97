"""The read loop: lines from a terminal or a pipe become statements and dot commands.

On a terminal prompt_toolkit edits; Enter runs the text when its last statement is closed by a
``;`` (or it is a dot command), else it opens another line.  Piped text is split the same way and
stops at its first error, so that a script does not run on after one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from quereus_store.cli.diagnostics import CommandError, report
from quereus_store.cli.session import Session
from quereus_store.cli.shell.dot_commands import DOT_COMMANDS, Leave, run_dot_command
from quereus_store.cli.shell.names import columns_by_relation
from quereus_store.cli.statements import Statement, is_complete, split_statements
from quereus_store.errors import Error

PROMPT = "quereus> "
CONTINUATION = "     ...> "


def run_terminal(session: Session, file: str) -> None:
    """Read and run until the user leaves; an error never ends the shell."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from quereus_store.cli.shell.completion import SqlCompleter

    completer = SqlCompleter(DOT_COMMANDS)
    keys = KeyBindings()
    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(history_file())),
        auto_suggest=AutoSuggestFromHistory(),
        completer=completer,
        complete_while_typing=False,
        multiline=True,
        key_bindings=keys,
        prompt_continuation=CONTINUATION,
    )

    @keys.add("enter", filter=Condition(lambda: not prompt.default_buffer.complete_state))
    def _enter(event: KeyPressEvent) -> None:
        text = event.current_buffer.text
        if not text.strip() or text.lstrip().startswith(".") or is_complete(text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    print(f"Quereus Store on {file}. Statements end with `;`, .help lists commands, Ctrl-D leaves.")
    while True:
        try:
            completer.set_names(columns_by_relation(session.connection))
            text = prompt.prompt(PROMPT)
            run_text(session, text)
        except KeyboardInterrupt:
            continue
        except (EOFError, Leave):
            return


def run_text(session: Session, text: str) -> bool:
    """Run what was entered at once: a dot command or statements; false when one failed."""
    stripped = text.strip()
    if not stripped.startswith("."):
        return all(session.execute(statement) for statement in split_statements(text))
    try:
        run_dot_command(session, stripped)
    except (CommandError, Error, OSError) as error:
        session.output.flush()
        report(error, session.errors)
        return False
    return True


def run_commands(session: Session, texts: Iterable[str]) -> bool:
    """Run what the command line says, one text after the other; stops at the first error."""
    try:
        return all(run_text(session, text) for text in texts)
    except Leave:
        return True


def run_piped(session: Session, text: str) -> bool:
    """Run a script with dot commands on lines of their own; stops at the first error."""
    pending: list[str] = []
    first = 1
    try:
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith(".") and is_complete("\n".join(pending)):
                if not _run_lines(session, pending, first) or not run_text(session, line):
                    return False
                pending, first = [], number + 1
            else:
                pending.append(line)
        return _run_lines(session, pending, first)
    except Leave:
        return True


def history_file() -> Path:
    """Where entered statements are remembered; the folder is made when missing."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(base) / "quereus"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        print(f"no history: {folder} cannot be made", file=sys.stderr)
        return Path(os.devnull)
    return folder / "history"


def _run_lines(session: Session, lines: list[str], first: int) -> bool:
    """Run statements whose first line is line ``first`` of standard input."""
    name = "standard input"
    for statement in split_statements("\n".join(lines)):
        placed = Statement(statement.text, statement.line + first - 1, statement.column, statement.complete)
        if not session.execute(placed, name):
            return False
    return True
