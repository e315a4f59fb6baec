"""Dashboard and alerts can be loaded, and ask for nothing that the code does not measure."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import promql_parser
import pytest
import yaml

from horolog.application.health import (
    DeadLetterDepth,
    Follower,
    Lateness,
    QueueDepth,
    QueueHealth,
    StoreHealth,
    Waiting,
)
from horolog.application.measuring import INSTRUMENTS
from horolog.application.metrics import metrics
from horolog.application.standing import GAUGES

DEPLOY = Path(__file__).parents[2] / "deploy"
NOW = datetime(2026, 11, 30, tzinfo=UTC)
STORE = StoreHealth(
    server="18", schema=9, schema_of_code=9, clock_offset_s=0, round_trip_s=0.001, position=1,
    jobs={"active": 1}, late_fires=0, lateness_s=0, overdue_looks=0, partitions=64, unowned=0,
    leaders={"a": 64}, unpublished=0, dead_letters=[DeadLetterDepth("a", 1, NOW)],
    waiting=[Waiting("a", "b", "c", 1, 0.0)], followers=[Follower("f", 1, 0)],
    counters={"stale_claims_refused": 1}, claims_late=Lateness(1), starts_late=Lateness(1),
)  # fmt: skip
QUEUE = QueueHealth("2", True, queues=[QueueDepth("a", 0, 0, 0)])


def measured() -> set[str]:
    """Every name that a scrape of all processes may hold."""
    names = {f"horolog_{name}" for name in GAUGES}
    for name, instrument in INSTRUMENTS.items():
        suffixes = ("_bucket", "_sum", "_count") if instrument.kind == "histogram" else ("",)
        names |= {f"horolog_{name}{suffix}" for suffix in suffixes}
    looked = metrics(replace(STORE), QUEUE)
    return names | set(re.findall(r"^# TYPE (horolog_\w+)", looked, re.MULTILINE))


def dashboard() -> dict[str, Any]:
    return json.loads((DEPLOY / "grafana" / "horolog.json").read_text())


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((DEPLOY / "prometheus" / "horolog.rules.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def questions() -> Iterator[str]:
    for rule in rules():
        yield rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$__rate_interval", "5m")


@pytest.mark.parametrize("question", list(questions()))
def test_each_question_is_promql_about_something_that_is_measured(question: str) -> None:
    parsed = cast("object", promql_parser.parse(question))  # pyright: ignore[reportUnknownMemberType]
    asked = set(re.findall(r"horolog_\w+", str(parsed)))
    assert asked
    assert asked <= measured()


def test_each_alert_says_what_it_means_and_what_to_do() -> None:
    assert len(rules()) >= 12
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert {"summary", "do"} <= rule["annotations"].keys()
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        for command in re.findall(r"horolog ([a-z-]+)", rule["annotations"]["do"]):
            assert command in {
                "audit", "dead-letters", "doctor", "inbox", "occurrence", "projection", "scanner",
            }  # fmt: skip


def test_the_panels_of_the_dashboard_are_laid_out_without_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_every_instrument_is_shown_or_told_of() -> None:
    everything = " ".join(questions())
    document = (DEPLOY.parent / "docs" / "observability.md").read_text()
    for name in (*INSTRUMENTS, *GAUGES):
        assert f"horolog_{name}" in everything or f"`horolog_{name}`" in document, name
