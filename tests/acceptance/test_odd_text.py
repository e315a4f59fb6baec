"""What users wrote is shown and obeyed by no terminal: it moves no cursor and forges no line."""

import re

import pytest
from tests.acceptance.conftest import Horolog

from horolog import Every, Scheduler

ODD = "odd\n     1 forged\x1b[2J\x1b]0;title\x07\u202etxt\r\u2028end"
SHOWN = r"\x1b[2J\x1b]0;title\x07\u202etxt\r\u2028end"


@pytest.mark.parametrize(
    "command",
    [
        ["job", "list"],
        ["job", "show", ODD],
        ["job", "history", ODD],
        ["job", "changes", ODD],
        ["log", "--topic", "job"],
        ["job", "pause", ODD + "!"],
    ],
    ids=" ".join,
)
def test_control_characters_of_a_key_are_written_out(
    horolog: Horolog, scheduler: Scheduler, command: list[str]
) -> None:
    scheduler.register("echo", schedule=Every(86_400), key=ODD, owner=ODD, reason=ODD)
    answer = horolog.within(*command, status=1 if "pause" in command else 0)
    shown = answer.out + answer.err
    assert "title" in shown
    assert not {"\x1b", "\x07", "\u202e", "\r", "\u2028"} & set(shown)
    if "pause" not in command:
        assert SHOWN in shown
    if "changes" in command:
        assert not any(line.startswith("     1 forged") for line in shown.splitlines())
    if {"history", "log"} & set(command):
        assert all(re.match(r" +\d+ 20\d\d-", line) for line in answer.out.splitlines())
