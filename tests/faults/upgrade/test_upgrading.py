"""An upgrade under load loses, doubles and corrupts nothing, or is refused with a clear word."""

import json
from pathlib import Path

import pytest
from tests.faults.upgrade.releases import golden_events, previous_release
from tests.faults.upgrade.upgrading import upgrade

from horolog.domain.event import read_event
from horolog.infrastructure.embedded import EmbeddedServers


def test_the_release_before_and_this_one_work_side_by_side_over_an_upgrade(
    servers: EmbeddedServers, namespace: str, tmp_path: Path
) -> None:
    previous = previous_release(tmp_path)
    if previous is None:
        pytest.skip("no history here: the release before cannot be run")
    seen = upgrade(servers, namespace, tmp_path, previous, seconds=0.0)
    assert seen.problems == []
    if seen.admitted:
        assert seen.old_runs > 5
        assert seen.new_runs >= 5
        assert seen.slowest_s < 5.0


def test_every_event_of_the_release_before_is_read() -> None:
    released = golden_events()
    if released is None:
        pytest.skip("no history here")
    assert len(released) > 20
    for topic, shapes in released.items():
        for stated in shapes.values():
            event = read_event(topic, json.dumps(stated).encode())
            if event.topic == topic:
                assert json.loads(event.to_json()).items() >= stated.items()
