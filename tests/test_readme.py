"""The README in an empty folder, as a newcomer follows it: every example and every command line runs."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store.cli.main import COMMANDS, build_parser
from quereus_store.cli.statements import split_statements

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
(SQL,) = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)


def section(heading: str) -> str:
    """What stands below a heading, up to the next one."""
    return TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def run(code: str, names: dict[str, Any]) -> None:
    exec(compile(code, "README.md", "exec"), names)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_first_example(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert TEXT.index("make demo") < TEXT.index("make test") < TEXT.index("```python")
    first = PYTHON[0]
    assert len(first.strip().splitlines()) <= 10
    run(first, {})
    run(first, {})  # again, on the file that is there now
    assert capsys.readouterr().out.splitlines() == ["Ann 3", "Bo None", "(2, 3)"] * 2


def test_the_other_examples_one_after_the_other(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _first, connecting, views, notification = PYTHON
    names: dict[str, Any] = {"quereus_store": quereus_store}
    run(connecting, names)
    assert (empty_folder / "app.qdb").is_file()
    assert (empty_folder / "app.leveldb").is_dir()
    run(views, names)
    (promised,) = re.findall(r"print\(rows\)  # (.*)", views)
    assert capsys.readouterr().out.splitlines() == [promised]
    run(notification, names)
    asyncio.run(_told(names))
    change, again = capsys.readouterr().out.splitlines()
    assert change == "insert trip (4,) (4, 'Chur', 1.0)"
    assert again.startswith("look again ")
    names["con"].close()


async def _told(names: dict[str, Any]) -> None:
    """Runs the example's coroutine until it has waited for one change."""
    dashboard = asyncio.create_task(names["dashboard"]())
    await asyncio.sleep(0)
    names["con"].execute("insert into trip values (4, 'Chur', 1)")
    await asyncio.sleep(0)
    assert not dashboard.done()
    dashboard.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dashboard


def test_the_surprises() -> None:
    """What the README warns of is so."""
    with quereus_store.connect(":memory:") as con:
        con.execute("create table t (id integer primary key, name text)")
        con.execute("create table d (at date primary key)")
        for refused in ("insert into t values (1, null)", "insert into t (name) values ('x')"):
            with pytest.raises(quereus_store.IntegrityError):
                con.execute(refused)
        con.execute("insert into d values (?)", ("2024-02-29",))
        with pytest.raises(quereus_store.Error):
            con.execute("insert into d values (?)", ("soon",))
        assert con.execute("select 7 / 2, 'A' like 'a'").fetchone() == (3.5, False)
        con.execute("create table whole (a integer, b text)")
        con.execute("insert into whole values (1, 'x'), (1, 'y')")
        with pytest.raises(quereus_store.IntegrityError):
            con.execute("insert into whole values (1, 'x')")
    with pytest.raises(quereus_store.InterfaceError):
        con.execute("select 1")


def test_the_declared_schema() -> None:
    """The rename keeps the rows of what has another name now."""
    with quereus_store.connect(":memory:") as con:
        con.execute("create table crew (id integer primary key, nick text)")
        con.execute("insert into crew values (7, 'Cy')")
        declare, diff, apply = (statement.text for statement in split_statements(SQL))
        con.execute(declare)
        assert len(con.execute(diff).fetchall()) >= 3
        con.execute(apply)
        assert con.execute("select id, name from crew order by id").fetchall() == [
            (1, "Ann"),
            (2, "Bo"),
            (7, "Cy"),
        ]
        assert con.execute("select * from ranks order by rank").fetchall() == [(1, 2), (3, 1)]
        assert con.execute("diff schema main").fetchall() == []


# --- the shell ----------------------------------------------------------------------------------------------


def command_lines() -> Iterator[str]:
    """The lines of the shell's section, without what they are said to do."""
    for line in re.findall(r"^    (.*quereus .*)$", section("The shell"), re.MULTILINE):
        yield re.split(r" {2,}", line)[0]


def test_every_command_is_shown() -> None:
    words = {line.split("quereus ")[1].split()[0] for line in command_lines()}
    assert set(COMMANDS) - words == {"shell"}


def test_the_command_lines_one_after_the_other(empty_folder: Path) -> None:
    """In the order in which they stand; benchmark and demo are only read, they have tests of their own."""
    bin_folder = empty_folder / "bin"
    bin_folder.mkdir()
    shim = bin_folder / "quereus"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quereus_store.cli "$@"\n')
    shim.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    Path("script.sql").write_text("create table note (id integer primary key); insert into note values (1);")
    Path("flights.csv").write_text("carrier,miles\nUA,1400\nAA,1416\n")
    Path("schema.sql").write_text(SQL.split("};")[0] + "};")
    done: dict[str, str] = {}
    for line in command_lines():
        command = line.replace("select …", "select * from crew")
        if "quereus bench" in command or "quereus demo" in command:
            build_parser().parse_args(command.split()[1:])
            continue
        result = subprocess.run(
            command,
            shell=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        # `diff` tells by its status that there is something to do.
        assert result.returncode == ("quereus diff" in command), f"{command}\n{result.stderr}"
        assert result.stderr == "", command
        done[line] = result.stdout
    ones = [output for line, output in done.items() if "select 1 as one" in line]
    assert ones == ["one\n1\n", "one\n1\n"]
    assert '"carrier":"UA","miles":1400' in Path("out.jsonl").read_text()
    assert 'create table "note"' in Path("app.sql").read_text().lower()
    with quereus_store.connect("app.qdb") as con:
        names = {row[0] for row in con.execute("select name from schema() where type = 'table'").fetchall()}
    assert names == {"crew"}


def test_the_error_that_is_shown(empty_folder: Path) -> None:
    message = section("The shell").split("non-zero exit status:\n\n")[1].split("\n\n")[0]
    expected = [line.removeprefix("    ") for line in message.splitlines()]
    sql = "create table crew (id integer primary key, name text);\n"
    command = [sys.executable, "-m", "quereus_store.cli", "app.qdb", "-c"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, sql], env=environment, check=True)
    result = subprocess.run(
        [*command, "select nam from crew"], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert result.stderr.splitlines() == expected


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
