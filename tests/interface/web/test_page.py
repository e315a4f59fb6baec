"""The page as a browser without scripts sees it: every view, every form, and who may use them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.interface.conftest import Stage
from tests.interface.web.conftest import ACCOUNTS, READER, WRITER, Browser, served

from horolog import Cron, Every, Scheduler
from horolog.interface.settings import Settings
from horolog.interface.web.accounts import Account
from horolog.interface.web.page.asking import within_here
from horolog.interface.web.page.timeline import timeline
from horolog.interface.web.settings import WebSettings

VIEWS = (
    *("/", "/?span=day", "/jobs", "/jobs?status=active&label=a%3Db", "/runs", "/runs?state=dead"),
    *("/figures", "/figures?span=week", "/dead-letters", "/partitions", "/partitions/3"),
    *("/projections", "/past", "/past?step=500", "/past?span=all&step=0", "/log", "/log?topic=job"),
    *("/parts/due", "/parts/live"),
)
HOSTILE = "<script>alert('x')</script>\"&'"


def token_in(page: httpx.Response) -> str:
    found = re.search(r'name="token" value="([0-9a-f]+)"', page.text)
    assert found is not None, page.text[:500]
    return found[1]


def sent(web: Browser, path: str, *, of: str = "", reason: str = "because", **fields: str) -> Any:
    """A form of the page ``of``, filled in and sent."""
    session = web.cookies.get("horolog") or ""
    if session not in web.tokens:  # one token is good for all forms of a session
        token = token_in(web.get(of or path))
        session = web.cookies.get("horolog") or ""
        web.tokens[session] = token
    return web.post(path, data={"token": web.tokens[session], "reason": reason, **fields})


def said(web: Browser, answer: httpx.Response) -> str:
    """What the page says to which a form leads."""
    assert answer.status_code == 303, answer.text
    text = web.get(answer.headers["location"]).text
    found = re.search(r'<p class="said (?:good|bad)" role="status">(.*?)</p>', text, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def test_every_view_is_there_and_escapes_what_users_wrote(
    web: Browser, stage: Stage, scheduler: Scheduler
) -> None:
    job = scheduler.register(
        "report",
        schedule=Every(60),
        key=HOSTILE,
        payload={HOSTILE: HOSTILE},
        owner=HOSTILE,
        labels={"a": HOSTILE},
        reason=HOSTILE,
    )
    scheduler.register("night", schedule=Cron("30 2 * * *", zone="America/New_York"))
    stage.succeed(stage.attempt(stage.claim(scheduler.trigger(job.id).id)), result=HOSTILE)
    running = stage.attempt(stage.claim(scheduler.trigger(job.id, reason=HOSTILE).id))
    dead = stage.dead(job.id)
    for path in (
        *VIEWS,
        f"/jobs/{job.id}?month=2027-03",
        f"/runs/{dead.id}",
        f"/runs/{running.id}",
    ):
        answer = web.get(path)
        assert answer.status_code == 200, (path, answer.text[-2000:])
        assert "<script>alert" not in answer.text
        assert not re.search(r"\sstyle=|\son[a-z]+=|javascript:", answer.text), path
    assert "&lt;script&gt;" in web.get(f"/jobs/{job.id}").text
    assert "no such card" in web.get(f"/runs/{dead.id}").text


def test_what_there_is_not_is_a_page_that_says_so(quiet_web: Browser) -> None:
    for path in ("/nothing", "/jobs/nobody", "/runs/nobody", "/runs?job=nobody", "/partitions/99"):
        answer = quiet_web.get(path)
        assert answer.status_code in (404, 422), path
        assert "To the front page" in answer.text
    assert quiet_web.get("/jobs?find=nobody").status_code == 200
    assert quiet_web.get("/jobs?limit=3&after=zzz").status_code == 404


def test_a_job_is_commanded_with_reasons(web: Browser, scheduler: Scheduler) -> None:
    job = scheduler.register("report", schedule=Every(3600), key="report")
    url = f"/jobs/{job.id}"
    assert "run is ordered" in said(web, sent(web, f"{url}/trigger", of=url))
    assert said(web, sent(web, f"{url}/pause", of=url, reason="a feast")).startswith("paused")
    assert said(web, sent(web, f"{url}/resume", of=url, catch_up="yes")) == "resumed"
    fields = {"cron": "0 3 * * *", "zone": "Europe/Berlin"}
    assert "new schedule" in said(web, sent(web, f"{url}/reschedule", of=url, **fields))
    assert "new schedule" in said(web, sent(web, f"{url}/reschedule", of=url, every="60"))
    assert "payload" in said(web, sent(web, f"{url}/update", of=url, payload='{"a": 1}'))
    assert "no JSON" in said(web, sent(web, f"{url}/update", of=url, payload="{"))
    span = {"start": "2026-01-01T00:00", "end": "2026-01-02T00:00"}
    assert "0 runs" in said(web, sent(web, f"{url}/backfill", of=url, **span))
    stale = sent(web, f"{url}/pause", of=url, version="1")
    assert "version" in said(web, stale)
    assert said(web, sent(web, f"{url}/cancel", of=url)).startswith("cancelled")
    assert {change.actor for change in scheduler.changes(job.id)[1:]} == {"me"}
    assert "a feast" in [change.reason for change in scheduler.changes(job.id)]
    assert "a feast" in web.get(url).text


def test_a_form_without_its_token_or_a_reason_does_nothing(
    web: Browser, scheduler: Scheduler
) -> None:
    job = scheduler.register("report", schedule=Every(3600))
    url = f"/jobs/{job.id}"
    token = token_in(web.get(url))
    for form, status in (
        ({"reason": "x"}, 403),
        ({"reason": "x", "token": "0" * 64}, 403),
        ({"token": token}, 422),
        ({"token": token, "reason": "  "}, 422),
        ({"token": token, "reason": "x" * 3000}, 422),
    ):
        assert web.post(f"{url}/pause", data=form).status_code == status
    with Browser(web.address) as other:  # a token is good for the session that it was made for
        other.get("/")
        assert other.post(f"{url}/pause", data={"token": token, "reason": "x"}).status_code == 403
    assert web.post(f"{url}/explode", data={"token": token, "reason": "x"}).status_code == 404
    assert scheduler.job(job.id).version == 1


def test_dead_letters_are_counted_before_they_are_replayed(
    web: Browser, stage: Stage, scheduler: Scheduler
) -> None:
    jobs = [scheduler.register("report", schedule=Every(3600), owner="billing") for _ in range(3)]
    dead = [stage.dead(job.id) for job in jobs]
    fields = {"owner": "billing", "rate": "100"}
    counted = sent(web, "/dead-letters/replay", of="/dead-letters", reason="mended", **fields)
    assert counted.status_code == 200
    assert "<b>3</b> dead letters of billing would be tried again" in counted.text
    assert len(scheduler.dead_letters()) == 3, "nothing has happened yet"
    one, two = f"/runs/{dead[0].id}", f"/runs/{dead[1].id}"
    assert "tried again" in said(web, sent(web, f"{one}/replay", of=one))
    assert "closed" in said(web, sent(web, f"{two}/discard", of=two))
    assert "only a dead letter" in said(web, sent(web, f"{one}/replay", of="/dead-letters"))
    sure = sent(web, "/dead-letters/replay", of="/dead-letters", sure="yes", **fields)
    assert said(web, sure) == "1 dead letters are tried again"
    bad = sent(web, "/dead-letters/replay", of=f"/jobs/{jobs[0].id}", limit="many")
    assert bad.status_code == 422


def test_a_run_is_cancelled_and_a_read_model_rebuilt(
    web: Browser, stage: Stage, scheduler: Scheduler
) -> None:
    job = scheduler.register("report", schedule=Every(3600))
    run = stage.attempt(stage.claim(scheduler.trigger(job.id).id))
    assert "asked to stop" in said(web, sent(web, f"/runs/{run.id}/cancel", of=f"/runs/{run.id}"))
    assert scheduler.occurrence(run.id).state == "stopping"
    begun = sent(web, "/projections/rebuild", of="/projections", name="jobs", reason="a check")
    assert said(web, begun) == "the rebuild has begun"
    while "put to use" not in (text := web.get("/projections").text):
        assert "failed" not in text
    assert "a check" in text


def test_the_past_shows_what_was_then(web: Browser, scheduler: Scheduler) -> None:
    before = datetime.now(UTC)
    scheduler.register("report", schedule=Every(3600), key="born-later")
    after = datetime.now(UTC) + timedelta(seconds=1)
    fragment = {"HX-Request": "true"}
    assert "born-later" not in web.get("/past", params={"at": before.isoformat()}).text
    assert "born-later" in web.get("/past?span=all", headers=fragment).text
    assert "<html" not in web.get("/past", headers=fragment).text
    assert web.get("/past", params={"at": after.isoformat()}).status_code == 200


def test_the_time_line_counts_every_fire_of_the_hour(scheduler: Scheduler) -> None:
    now = datetime.now(UTC)
    scheduler.register("often", schedule=Every(10, anchor=now))
    scheduler.register("rarely", schedule=Every(1200, anchor=now))
    scheduler.register("limited", schedule=Every(600, anchor=now, limit=2))
    found = timeline(scheduler, now, timedelta(hours=1), 60)
    counts = {lane.name: lane.total for lane in found.lanes}
    assert counts["limited"] == 2
    assert counts["rarely"] in (2, 3)
    assert 355 <= counts["often"] <= 360
    assert found.complete


def test_people_log_in_where_there_are_accounts(settings: Settings, scheduler: Scheduler) -> None:
    job = scheduler.register("report", schedule=Every(3600))
    with served(settings, WebSettings(accounts=ACCOUNTS)) as web:
        away = web.get("/jobs?status=active")
        assert (away.status_code, away.headers["location"]) == (
            303,
            "/login?next=%2Fjobs%3Fstatus%3Dactive",
        )
        assert web.get("/parts/live", headers={"HX-Request": "true"}).headers["hx-redirect"]
        assert web.get("/static/app.css").status_code == 200
        for name, secret in (("ann", READER), ("nobody", WRITER), ("", "")):
            assert web.post("/login", data={"name": name, "secret": secret}).status_code == 401
        form = {"name": "ann", "secret": WRITER, "next": "/jobs?status=active"}
        entered = web.post("/login", data=form)
        assert entered.headers["location"] == "/jobs?status=active"
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        url = f"/jobs/{job.id}"
        assert said(web, sent(web, f"{url}/pause", of=url)).startswith("paused")
        assert scheduler.changes(job.id)[-1].actor == "ann"
        assert web.get("/api/v1/jobs").status_code == 401, "the API takes no cookies"
        assert web.post("/logout", data={"token": "x"}).status_code == 403
        assert web.post("/logout", data={"token": token_in(web.get(url))}).status_code == 303
        web.cookies.clear()
        assert web.get("/jobs").status_code == 303

        web.post("/login", data={"name": "bob", "secret": READER})
        page = web.get(url)
        assert "looks only" in page.text
        assert "Run now" not in page.text
        form = {"token": token_in(page), "reason": "x"}
        assert web.post(f"{url}/cancel", data=form).status_code == 403
        forged = web.cookies["horolog"][:-4] + "0000"
        web.cookies.clear()
        assert web.get("/jobs", headers={"Cookie": f"horolog={forged}"}).status_code == 303


def test_guessing_has_to_wait(settings: Settings) -> None:
    with served(settings, WebSettings(accounts=ACCOUNTS)) as web:
        statuses = [
            web.post("/login", data={"name": "ann", "secret": str(n)}).status_code
            for n in range(11)
        ]
        assert statuses == [401] * 10 + [429]
        right = {"name": "ann", "secret": WRITER}
        assert web.post("/login", data=right).status_code == 429


def test_a_server_that_only_shows_changes_nothing(settings: Settings) -> None:
    with served(settings, WebSettings(read_only=True)) as web:
        body = {"name": "report", "schedule": {"every": 60}}
        assert web.post("/api/v1/jobs", json=body).status_code == 403
        assert "looks only" in web.get("/").text


def test_behind_tls_the_cookie_goes_nowhere_else() -> None:
    accounts = (Account.of("write", "ann", WRITER, where="test"),)
    web = WebSettings(accounts=accounts, behind_proxy=True, names=("localhost",))
    nowhere = Settings.read("postgresql://x@127.0.0.1:1/x", namespace="x", environment={})
    with served(nowhere, web) as browser:
        entered = browser.post("/login", data={"name": "ann", "secret": WRITER})
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith("__Host-horolog=")
        assert "Secure" in cookie
        assert entered.headers["strict-transport-security"]


@pytest.mark.parametrize(
    "path", ["https://evil.example/", "//evil.example", "/\\evil.example", "", "jobs", "/\n/x"]
)
def test_a_login_leads_nowhere_else(path: str) -> None:
    assert within_here(path) == "/"
    assert not urlsplit(within_here(path)).netloc


def test_postgres_away_is_said_on_the_page() -> None:
    nowhere = Settings.read("postgresql://x@127.0.0.1:1/x", namespace="x", environment={})
    with served(nowhere) as web:
        answer = web.get("/jobs")
        assert answer.status_code == 503
        assert "A service is away" in answer.text
