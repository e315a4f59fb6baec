"""What a rule of alerts may be, and what is said of it."""

from typing import Any

import pytest

from horolog.application.alerting.rules import AlertRule
from horolog.domain.errors import InvalidPolicy

SECRET = "T0-very-secret"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "it watches nothing"),
        ({"dead_letters": 0}, "dead_letters"),
        ({"dead_letter_age": float("nan")}, "dead_letter_age"),
        ({"deadlines": True, "repeat": 0.0}, "repeat"),
        ({"deadlines": True, "command": "rm -rf /"}, "as a list"),
        ({"deadlines": True, "command": []}, "command"),
        ({"deadlines": True, "command": ["a\0b"]}, "cannot store"),
        ({"deadlines": True, "owner": "a\ud800b"}, "."),
        ({"deadlines": True, "webhook": f"ftp://host/{SECRET}"}, "https://host/path"),
        ({"deadlines": True, "webhook": f"https://host/{SECRET}\r\nX: y"}, "https://host/path"),
        ({"deadlines": True, "webhook": f"https://:{SECRET}@/x"}, "https://host/path"),
        ({"deadlines": True, "webhook": f"https://host:{SECRET}/x"}, "https://host/path"),
        ({"deadlines": True, "nats": "alerts.>"}, "no subject"),
        ({"deadlines": True, "nats": "two words"}, "no subject"),
    ],
)
def test_what_cannot_be_is_refused_and_shows_no_secret(values: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why) as refused:
        AlertRule.checked(**values)
    assert SECRET not in str(refused.value)


def test_what_is_said_of_a_rule_is_not_what_opens_doors() -> None:
    rule = AlertRule.checked(
        "team",
        deadlines=True,
        command=["/usr/bin/page", "--token", SECRET],
        webhook=f"https://ann:{SECRET}@hooks.example.com:8443/{SECRET}?key={SECRET}",
        nats="alerts.team",
    )
    assert rule.shown() == {
        "command": "/usr/bin/page …",
        "webhook": "https://hooks.example.com:8443/…",
        "nats": "alerts.team",
    }
