"""The HTTP API as a program in another language sees it."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.interface.conftest import Stage
from tests.interface.web.conftest import ACCOUNTS, READER, WRITER, Browser, every, served

from horolog import Scheduler
from horolog.domain import errors
from horolog.infrastructure.privacy.master_keys import new_master_key
from horolog.interface.settings import Settings
from horolog.interface.web.problems import STATUS, problem_of
from horolog.interface.web.settings import WebSettings

API = "/api/v1"
NOBODY = "01a22d79-480f-889b-ae5c-b8c50d5953ee"
EVERY = {"name": "a", "schedule": {"every": 1}}


def test_a_job_is_registered_found_changed_and_cancelled(web: Browser) -> None:
    job = every(web, key="a/b", labels={"region": "us"}, payload={"n": 1}, reason="why not")
    assert web.get(f"{API}/jobs/{job['id']}").json() == job
    assert web.get(f"{API}/job", params={"key": "a/b"}).json() == job
    assert [j["id"] for j in web.get(f"{API}/jobs?label=region%3Dus").json()["items"]] == [
        job["id"]
    ]
    changed = web.patch(f"{API}/jobs/{job['id']}", json={"payload": {"n": 2}, "owner": "ops"})
    assert (changed.json()["payload"], changed.json()["owner"]) == ({"n": 2}, "ops")
    body = {"schedule": {"cron": "0 2 * * *", "zone": "America/New_York"}, "reason": "night"}
    assert web.put(f"{API}/jobs/{job['id']}/schedule", json=body).status_code == 200
    fires = web.get(f"{API}/jobs/{job['id']}/upcoming?n=3").json()["items"]
    assert len(fires) == 3
    for command, status in (("pause", "paused"), ("resume", "active"), ("cancel", "cancelled")):
        answer = web.post(f"{API}/jobs/{job['id']}/{command}", json={"reason": command})
        assert answer.json()["status"] == status
    changes = web.get(f"{API}/jobs/{job['id']}/changes").json()["items"]
    assert [c["reason"] for c in changes][-3:] == ["pause", "resume", "cancel"]
    assert {c["actor"] for c in changes} == {"me"}


def test_a_create_that_is_sent_again_is_answered_as_the_first_time(
    web: Browser, stage: Stage
) -> None:
    body = {"name": "report", "schedule": {"every": 1}}
    headers = {"Idempotency-Key": str(uuid4())}
    first = web.post(f"{API}/jobs", json=body, headers=headers)
    stage.claim_due(UUID(first.json()["id"]))
    web.post(f"{API}/jobs/{first.json()['id']}/pause")
    again = web.post(f"{API}/jobs", json=body, headers=headers)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["location"] == first.headers["location"]
    assert len(web.get(f"{API}/jobs").json()["items"]) == 1
    other = web.post(f"{API}/jobs", json=body | {"name": "other"}, headers=headers)
    assert (other.status_code, other.json()["error"]) == (409, "KeyConflict")


def test_a_trigger_and_a_backfill_that_are_sent_again_order_nothing_more(web: Browser) -> None:
    anchor = datetime.now(UTC) - timedelta(hours=3, minutes=30)
    schedule = {"every": 3600, "anchor": anchor.isoformat(), "start": anchor.isoformat()}
    job = every(web, schedule=schedule, catch_up="skip")
    url, headers = f"{API}/jobs/{job['id']}", {"Idempotency-Key": "once"}
    first = web.post(f"{url}/trigger", headers=headers)
    assert web.post(f"{url}/trigger", headers=headers).content == first.content
    assert first.status_code == 201
    late = {"at": "2031-01-01T00:00:00Z"}
    assert web.post(f"{url}/trigger", headers=headers, json=late).status_code == 409

    span = {"start": "2026-01-01T00:00:00Z", "end": datetime.now(UTC).isoformat()}
    planned = web.post(f"{url}/backfill", json=span | {"dry_run": True}).json()
    ordered = web.post(f"{url}/backfill", json=span, headers=headers)
    again = web.post(f"{url}/backfill", json=span, headers=headers)
    assert again.content == ordered.content
    assert ordered.json()["count"] == planned["count"] == len(planned["planned"])
    other = web.post(f"{url}/backfill", json=span | {"end": span["start"]}, headers=headers)
    assert (ordered.json()["count"] == 0) or other.status_code == 409


def test_a_change_of_an_older_version_is_refused(web: Browser) -> None:
    job = every(web)
    url = f"{API}/jobs/{job['id']}"
    seen = web.get(url).headers["etag"]
    assert web.post(f"{url}/pause", headers={"If-Match": seen}).status_code == 200
    stale = web.post(f"{url}/resume", headers={"If-Match": seen})
    assert (stale.status_code, stale.json()["type"]) == (
        412,
        "urn:horolog:problem:version-conflict",
    )
    assert stale.json()["current"] == 2
    for tag, status in (('"1", "2"', 200), ('W/"3"', 412), ('"x"', 412), ("*", 200)):
        answer = web.patch(url, json={"owner": tag}, headers={"If-Match": tag})
        assert answer.status_code == status, tag


def test_every_refusal_has_its_status_and_type() -> None:
    kinds = [
        k for k in vars(errors).values() if isinstance(k, type) and k is not errors.HorologError
    ]
    assert set(kinds) <= set(STATUS)
    seen = set[str]()
    for kind in STATUS:
        position = {"position": 1} if kind is errors.ProjectionStopped else {}
        answer = problem_of(kind("no", **position))
        assert answer.status_code == STATUS[kind]
        assert answer.media_type == "application/problem+json"
        seen.add(bytes(answer.body).decode().partition('"title"')[0])
    assert len(seen) == len(STATUS)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/jobs/nobody", None, 404, "unknown-job"),
        ("GET", f"/occurrences/{NOBODY}", None, 404, "unknown-occurrence"),
        ("GET", "/jobs?stauts=active", None, 422, "invalid-request"),
        ("GET", "/jobs?name=a&name=b", None, 422, "invalid-request"),
        ("GET", "/jobs?limit=0", None, 422, "invalid-request"),
        ("GET", "/due?at=2027-01-01T00:00:00", None, 422, "invalid-request"),
        ("GET", "/due?at=1700000000", None, 422, "invalid-request"),
        ("GET", "/nothing", None, 404, "unknown-address"),
        ("DELETE", "/jobs", None, 405, "unknown-method"),
        ("POST", "/jobs", {"name": "a"}, 422, "invalid-request"),
        ("POST", "/jobs", EVERY | {"schedule": {"cron": "x"}}, 422, "invalid-schedule"),
        ("POST", "/jobs", EVERY | {"schedule": {"every": 9, "start": 0}}, 422, "invalid-schedule"),
        ("POST", "/jobs", EVERY | {"schedule": {"at": 1.5}}, 422, "invalid-schedule"),
        ("POST", "/jobs", EVERY | {"priority": "1"}, 422, "invalid-request"),
        ("POST", "/jobs", EVERY | {"tiemout": 1}, 422, "invalid-request"),
        ("POST", "/jobs", EVERY | {"retry": {"tries": 1}}, 422, "invalid-request"),
        ("POST", f"/dead-letters/{NOBODY}/replay", None, 404, "unknown-occurrence"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_a_reason(
    quiet_web: Browser, method: str, path: str, body: Any, status: int, kind: str
) -> None:
    answer = quiet_web.request(method, API + path, json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["type"] == f"urn:horolog:problem:{kind}"
    assert answer.headers["content-type"] == "application/problem+json"
    if status == 405:
        assert answer.headers["allow"] == "GET, POST"


def test_pages_follow_each_other_to_the_end(web: Browser) -> None:
    ids = sorted(every(web, key=str(number))["id"] for number in range(5))
    found: list[str] = []
    following = f"{API}/jobs?limit=2&status=active"
    sizes: list[int] = []
    while following:
        answer = web.get(following)
        page = answer.json()
        sizes.append(len(page["items"]))
        found += [job["id"] for job in page["items"]]
        following = page["next"]
        assert ("link" in answer.headers) == bool(following)
    assert (found, sizes) == (ids, [2, 2, 1])


def test_the_log_is_waited_for(web: Browser) -> None:
    position = web.get(f"{API}/log/position").json()["position"]
    empty = web.get(f"{API}/log?after={position}&wait=0.3").json()
    assert empty == {"items": [], "next": None, "position": position}
    job = every(web)
    page = web.get(f"{API}/log?after={position}&wait=30&topic=job").json()
    assert [e["stream"] for e in page["items"]] == [job["id"]]
    assert page["position"] > position


def test_dead_letters_are_counted_replayed_and_discarded(
    web: Browser, stage: Stage, scheduler: Scheduler
) -> None:
    jobs = [every(web, key=str(n), owner="billing") for n in range(3)]
    dead = [stage.dead(scheduler.job(job["id"]).id) for job in jobs]
    letters = web.get(f"{API}/dead-letters?owner=billing").json()["items"]
    assert {letter["id"] for letter in letters} == {str(state.id) for state in dead}
    one = f"{API}/dead-letters/{dead[0].id}"
    assert web.post(f"{one}/replay", json={"reason": "mended"}).json()["state"] == "scheduled"
    assert web.post(f"{one}/replay").status_code == 409
    assert web.post(f"{API}/dead-letters/{dead[1].id}/discard").json()["state"] == "discarded"
    count = {"owner": "billing", "dry_run": True}
    assert web.post(f"{API}/dead-letters/replay", json=count).json() == {"count": 1}
    assert web.post(f"{API}/dead-letters/replay", json={}).json() == {"count": 1}
    assert web.get(f"{API}/dead-letters").json()["items"] == []
    story = web.get(f"{API}/occurrences/{dead[0].id}/explain").json()
    assert any("mended" in step["what"] for step in story["steps"])


def test_what_the_system_is_can_be_asked(web: Browser, stage: Stage) -> None:
    job = every(web)
    stage.succeed(stage.attempt(stage.claim(stage.scheduler.trigger(job["id"]).id)))
    soon = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    now = datetime.now(UTC).isoformat()
    assert len(web.get(f"{API}/due/next", params={"until": soon}).json()["items"]) == 1
    assert len(web.get(f"{API}/due", params={"at": now}).json()["items"]) == 1
    assert len(web.get(f"{API}/executions").json()["items"]) == 1
    assert web.get(f"{API}/skips").json()["items"] == []
    figures = web.get(f"{API}/statistics?by=all").json()
    assert [row["runs"] for row in figures["items"]] == [1]
    assert web.get(f"{API}/occurrences?state=succeeded").json()["items"][0]["job_id"] == job["id"]
    assert len(web.get(f"{API}/jobs/{job['id']}/history").json()["items"]) == 2
    partitions = web.get(f"{API}/partitions").json()["items"]
    assert len(partitions) == 64
    number = job["partition"]
    assert partitions[number]["fires"] == 1
    elections = web.get(f"{API}/partitions/{number}/history").json()["items"]
    assert [e["topic"] for e in elections] == ["partition.elected.1"]
    assert web.get(f"{API}/partitions/64/history").status_code == 404
    assert web.put(f"{API}/queues/mail", json={"limit": 3}).json()["items"][0]["limit"] == 3
    assert web.get(f"{API}/queues").json()["items"][0]["queue"] == "mail"
    health = web.get(f"{API}/health").json()
    assert health["store"]["jobs"] == {"active": 1}
    assert not health["healthy"]  # no scanner runs
    assert web.get(f"{API}/zone-corrections").json()["items"] == []
    assert web.post(f"{API}/zone-corrections").json()["items"] == []


def test_many_jobs_are_registered_or_declared_at_once(web: Browser) -> None:
    jobs = [{"name": "a", "key": key, "schedule": {"every": 60}} for key in "xyz"]
    made = web.post(f"{API}/jobs/many", json={"jobs": jobs})
    assert (made.status_code, len(made.json()["items"])) == (201, 3)
    declared = {"jobs": jobs[:2], "prune": True, "reason": "fewer"}
    assert web.post(f"{API}/jobs/apply", json=declared | {"dry_run": True}).json()["pruned"] == [
        "z"
    ]
    assert web.post(f"{API}/jobs/apply", json=declared).json()["pruned"] == ["z"]
    assert web.post(f"{API}/jobs/apply", json=declared).json()["unchanged"] == ["x", "y"]
    bad = [*jobs[:1], {"name": "a", "schedule": {"every": -1}}]
    assert web.post(f"{API}/jobs/many", json={"jobs": bad}).status_code == 422
    body = {"schedule": {"every": 60}, "n": 2, "after": "2027-01-01T00:00:00Z"}
    assert len(web.post(f"{API}/schedules/preview", json=body).json()["items"]) == 2
    compared = web.post(f"{API}/jobs/x/compare", json={"schedule": {"every": 120}})
    assert compared.json()["removed"]


def test_read_models_are_verified_and_rebuilt(web: Browser) -> None:
    every(web)
    begun = web.post(f"{API}/projections/rebuild", json={"names": ["jobs"], "reason": "test"})
    assert begun.status_code == 202
    while (work := web.get(f"{API}/projections").json()["work"])["state"] == "running":
        pass
    assert (work["state"], work["outcome"]["exchanged"], work["share"]) == ("done", True, 1.0)
    assert (work["actor"], work["reason"]) == ("me", "test")
    assert web.post(f"{API}/projections/verify", json={"names": ["nope"]}).status_code == 422
    assert web.get(f"{API}/projections").json()["status"]["projections"]


def test_who_may_do_what(settings: Settings) -> None:
    with served(settings, WebSettings(accounts=ACCOUNTS)) as web:
        stranger = web.get(f"{API}/jobs")
        assert (stranger.status_code, stranger.headers["www-authenticate"]) == (401, "Bearer")
        for wrong in ("Bearer", "Bearer nonsense", f"Basic {WRITER}", "Bearer é"):
            sent = {b"Authorization": wrong.encode()}
            assert web.get(f"{API}/jobs", headers=sent).status_code == 401
        bob = {"Authorization": f"Bearer {READER}"}
        ann = {"Authorization": f"Bearer {WRITER}"}
        body = {"name": "report", "schedule": {"every": 60}}
        assert web.get(f"{API}/jobs", headers=bob).status_code == 200
        refused = web.post(f"{API}/jobs", json=body, headers=bob)
        assert (refused.status_code, refused.json()["type"]) == (
            403,
            "urn:horolog:problem:forbidden",
        )
        job = web.post(f"{API}/jobs", json=body, headers=ann).json()
        history = web.get(f"{API}/jobs/{job['id']}/history", headers=bob).json()
        assert history["items"][0]["actor"] == "ann"
        described = web.get(f"{API}/openapi.json").json()
        assert described["security"] == [{"bearer": []}]


def test_a_postgres_that_is_away_is_a_503_that_says_when_to_come_back() -> None:
    nowhere = Settings.read("postgresql://x@127.0.0.1:1/x", namespace="x", environment={})
    with served(nowhere) as web:
        answer = web.get(f"{API}/jobs")
        assert (answer.status_code, answer.json()["error"]) == (503, "StoreUnavailable")
        assert answer.headers["retry-after"]
        assert web.get(f"{API}/health").json()["store"] is None


def test_the_data_of_a_person_is_kept_sealed_and_forgotten_by_the_api(settings: Settings) -> None:
    with served(replace(settings, given_master_keys=new_master_key())) as web:
        job = every(web, subject="customer-42", payload={"card": "4711"}, key="bill")
        other = every(web)
        found = web.get(f"{API}/jobs?subject=customer-42").json()["items"]
        assert [one["id"] for one in found] == [job["id"]]
        assert "4711" not in web.get(f"{API}/jobs/{job['id']}").text
        body = {"subject": "customer-42", "reason": "request 7"}
        for already, cancelled in ((False, 1), (True, 0)):
            done = web.post(f"{API}/subjects/forget", json=body)
            assert done.status_code == 200, done.text
            assert (done.json()["already"], done.json()["jobs_cancelled"]) == (already, cancelled)
        assert web.get(f"{API}/jobs/{job['id']}").json()["status"] == "cancelled"
        assert web.get(f"{API}/jobs/{other['id']}").json()["status"] == "active"
        again = web.post(f"{API}/jobs", json=EVERY | {"subject": "customer-42"})
        assert (again.status_code, again.json()["error"]) == (409, "SubjectForgotten")


def test_what_coverage_has_found(quiet_web: Browser) -> None:
    refused = quiet_web.post(
        f"{API}/schedules/preview", json={"schedule": {"every": 1, "jitter": False}}
    )
    assert (refused.status_code, refused.json()["error"]) == (422, "InvalidSchedule")
    at = {"at": "2027-03-01T08:00:00Z", "zone": None}
    preview = quiet_web.post(f"{API}/schedules/preview", json={"schedule": at})
    assert preview.status_code == 200
    forms = str(quiet_web.get(f"{API}/openapi.json").json())
    assert "'null'" in forms[forms.index("'at': {") :][:400], "as the document says"
    allowed = quiet_web.request("OPTIONS", f"{API}/jobs/apply")
    assert (allowed.status_code, allowed.headers["allow"]) == (405, "POST")


def test_the_requests_of_the_document_are_answered(web: Browser) -> None:
    document = (Path(__file__).parents[3] / "docs" / "http-api.md").read_text()
    (block,) = re.findall(r"```console\n(.*?)```", document, re.DOTALL)
    asked = [shlex.split(one)[2:] for one in block.split("$ ")[1:]]
    assert len(asked) == 4
    for words in asked:
        stated = {words[n]: words[n + 1] for n in range(len(words)) if words[n].startswith("-")}
        (address,) = [word for word in words if word.startswith("localhost:8480")]
        answer = web.request(
            stated.get("-X", "POST" if "-d" in stated else "GET"),
            address.removeprefix("localhost:8480").replace("&wait=20", ""),
            content=stated.get("-d"),
            headers=dict([stated["-H"].split(": ")]) if "-H" in stated else {},
        )
        assert answer.status_code in (200, 201), answer.text
