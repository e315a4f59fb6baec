"""Alerts by the command line."""

import shlex
import sys

from tests.acceptance.conftest import Horolog

SECRET = "s3cret"


def test_a_rule_is_set_listed_tried_removed_and_its_story_told_without_its_secrets(
    horolog: Horolog,
) -> None:
    takes = shlex.join([sys.executable, "-c", "import sys; print(sys.stdin.read())", SECRET])
    told = horolog.within(
        "alert", "set", "team-billing", "--dead-letters", "10", "--age", "3600", "--deadlines",
        "--command", takes, "--webhook", f"http://127.0.0.1:1/{SECRET}", "--reason", "on call",
    ).out  # fmt: skip
    assert told.startswith("team-billing: 10 dead letters, one of 3600 s, missed deadlines; tells")
    horolog.within("alert", "set", "--everybody", "--dead-letters", "100")
    listed = horolog.within("alert", "list", "--json")
    assert [rule["owner"] for rule in listed.json["rules"]] == [None, "team-billing"]
    assert listed.json["alerts"] == []
    tried = horolog.within("alert", "test", "team-billing", "--json", status=1)
    assert [(one["way"], bool(one["error"])) for one in tried.json] == [
        ("command", False), ("webhook", True),
    ]  # fmt: skip
    horolog.within("alerts", "remove", "--everybody")
    story = horolog.within("alert", "history")
    assert [line.split()[2] for line in story.out.splitlines()] == [
        "alert_rule.set", "alert_rule.set", "alert_rule.removed",
    ]  # fmt: skip
    everything = horolog.within("log", "--json").out + horolog.within("alert", "list").out
    assert SECRET not in told + listed.out + story.out + tried.out + everything


def test_what_cannot_be_a_rule_is_refused_in_one_line(horolog: Horolog) -> None:
    for arguments, status, words in (
        (["set", "--dead-letters", "1"], 2, "--everybody"),
        (["set", "a", "--everybody", "--dead-letters", "1"], 2, "--everybody"),
        (["set", "a"], 1, "it watches nothing"),
        (["set", "a", "--dead-letters", "0"], 1, "dead_letters"),
        (["set", "a", "--deadlines", "--webhook", f"ftp://x/{SECRET}"], 1, "https://host/path"),
        (["set", "a", "--deadlines", "--command", "'"], 2, "--command cannot be read"),
        (["remove", "nobody"], 1, "there is no rule of alerts of 'nobody'"),
        (["test", "nobody"], 1, "there is no rule of alerts of 'nobody'"),
    ):
        answer = horolog.within("alert", *arguments, status=status)
        assert words in answer.err
        assert SECRET not in answer.err
        assert len(answer.err.splitlines()) == 1
