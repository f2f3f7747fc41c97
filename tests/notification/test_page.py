"""The examples of docs/change-notification.md do what the page says."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "change-notification.md"


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, streams, scopes = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(first, str(PAGE), "exec"), names)
    assert capsys.readouterr().out == "insert tank (1,) (1, 'north', 2.5)\n"
    exec(compile(scopes, str(PAGE), "exec"), names)
    names["con"].execute("insert into tank values (2, 'north', 1)")
    assert capsys.readouterr().out.splitlines()[-1] == "(('north',),)"

    (coroutine, loop) = streams.split("\n\n\n")
    exec(compile(coroutine, str(PAGE), "exec"), names)
    drawn: list[int] = []
    names["redraw"] = lambda: drawn.append(1) or names["con"].close()

    async def watched() -> None:
        task = asyncio.create_task(names["dashboard"](names["database"]))
        await asyncio.sleep(0)
        names["con"].execute("delete from tank where id = 2")
        await asyncio.wait_for(task, 10)

    asyncio.run(watched())
    assert drawn == [1]
    assert "hits" in loop
