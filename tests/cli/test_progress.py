"""Long work tells how far it is: a bar on the terminal, nothing where nobody looks."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="the system has no pseudo-terminals")

ROOT = Path(__file__).parents[2]
IMPORT = [sys.executable, "-m", "quereus_store.cli", "import", "app.qdb", "t", "t.csv"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = (f"{number},name {number}\n" for number in range(30_000))
    (tmp_path / "t.csv").write_text("id,name\n" + "".join(lines))
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}


def shown_on_a_terminal(command: list[str], folder: Path) -> str:
    """What a command writes to its error stream when that is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=slave
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # Linux ends a terminal that nobody writes to by an error
        while read := os.read(master, 65536):
            shown += read
    os.close(master)
    assert process.wait(60) == 0
    return shown.decode()


def test_an_import_shows_a_bar(folder: Path) -> None:
    shown = shown_on_a_terminal(IMPORT, folder)
    shares = [int(share) for share in re.findall(r"loading .*?(\d+)%", shown)]
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert "━" in shown


def test_no_bar_in_a_pipe(folder: Path) -> None:
    done = subprocess.run(IMPORT, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.endswith("30,000 rows into t\n")
