"""The tutorial, as a newcomer walks it: each of its programs and commands, in their order."""

import re
import shlex
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.acceptance.conftest import Horolog, Running, eventually

from horolog.infrastructure.embedded import EmbeddedServers

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()


@pytest.fixture
def terminal(clean_environment: dict[str, str], tmp_path: Path) -> Generator[Horolog]:
    home = {"HOROLOG_HOME": str(tmp_path / ".horolog")}
    commands = Horolog(clean_environment | home, tmp_path)
    try:
        yield commands
    finally:
        commands.stop_all()
        EmbeddedServers(tmp_path / ".horolog").stop()


def test_the_tutorial_can_be_walked(terminal: Horolog) -> None:
    programs: list[str] = []
    developing: Running | None = None

    def develop(*command: str) -> Running:
        running = terminal.start(*command)
        running.wait_for_line(lambda line: "Ctrl-C stops" in line)
        return running

    for language, block in re.findall(
        r"^```(python|console)\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL
    ):
        if language == "python":
            (terminal.folder / "shop.py").write_text(block)
            programs.append(block)
            if developing is not None:
                developing.stop()
                developing = develop("dev", "shop:worker")
            continue
        for line in block.splitlines():
            command = shlex.split(line.removeprefix("$ "), comments=True)
            assert command.pop(0) == "horolog"
            if command[0] == "dev":
                developing = develop(*command)
            elif "--follow" in command:
                following = terminal.start(*command)
                following.wait_for_line(lambda line: "occurrence.succeeded" in line)
                following.stop()
            else:
                walk(terminal, command)
    assert len(programs) == 2


def walk(terminal: Horolog, command: list[str]) -> None:
    """One command; what the text says of its answer is so."""
    if "ID" in command:
        dead = eventually(
            lambda: terminal.within("occurrence", "list", "--job", "bob", "--json").json
        )
        command[command.index("ID")] = dead[0]["id"]
    match command[:2]:
        case ["dead-letters", "list"]:
            letters = eventually(lambda: terminal.within(*command, "--json").json)
            assert letters[0]["owner"] == "team-mail"
        case ["job", "changes"]:
            assert "because 'ann is on holiday'" in terminal.within(*command).out
        case ["occurrence", "explain"]:
            assert "'bob' is not an address" in terminal.within(*command).out
        case ["occurrence", "show"]:
            shown = eventually(
                lambda: (
                    answer
                    if (answer := terminal.within(*command, "--json").json)["state"] == "succeeded"
                    else None
                )
            )
            assert shown["result"] == {"sent": "hello to bob@example.com", "key": shown["id"]}
        case _:
            terminal.within(*command)
