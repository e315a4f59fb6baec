"""`make screenshots`: the pictures of docs/web.md, from a real system that has run for a while."""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.interface.web.conftest import served
from tests.interface.web.in_a_browser import SCREENSHOTS, browser

from horolog import Cron, Every, Retry, Schedule, Scheduler
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.processes.children import Child, stop_all
from horolog.interface.settings import Settings

RUN_S = 100.0
"""How long the system runs before its picture is taken."""


def main() -> int:
    SCREENSHOTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="horolog-pictures-") as folder:
        servers = EmbeddedServers(Path(folder) / "home")
        try:
            found = servers.ensure()
            settings = Settings.read(
                found.database_url,
                nats_url=found.nats_url,
                home=folder,
                actor="ann",
                environment={},
            )
            database = Database(found.database_url, settings.namespace)
            migrate(database)
            database.close()
            children = [
                Child.start(name, arguments, settings, output=Path(folder) / name)
                for name, arguments in (
                    ("scanner a", ["scanner"]),
                    ("scanner b", ["scanner"]),
                    ("worker", ["worker", "horolog.interface.samples:worker"]),
                )
            ]
            try:
                with Scheduler(settings=settings) as scheduler, served(settings) as web:
                    fill(scheduler)
                    time.sleep(RUN_S)
                    take(web.address, scheduler)
            finally:
                stop_all(children, 20.0)
        finally:
            servers.stop()
    return 0


def fill(scheduler: Scheduler) -> None:
    """Jobs of every kind, and some history."""

    def add(key: str, name: str, schedule: Schedule, **more: Any) -> Any:
        return scheduler.register(name, schedule=schedule, key=key, **more)

    say = {"text": "done"}
    add("heartbeat", "ping", Every(5), owner="team-core", labels={"tier": "gold"})
    add("sync-customers", "echo", Every(20), payload=say, owner="team-crm")
    add("import-feed", "sleep", Every(30), payload={"seconds": 14}, owner="team-data")
    add("pull-rates", "flaky", Every(25), owner="team-treasury", retry=Retry(base=3.0))
    add("close-books", "poison", Every(40), owner="team-billing", labels={"region": "eu"})
    retry = Retry(max_attempts=2, base=1.0)
    add("send-dunning", "hopeless", Every(35), owner="team-billing", retry=retry)
    add("rotate-keys", "echo", Cron("*/5 * * * *", zone="Europe/Berlin"), payload=say)
    add("digest", "echo", Cron("0 9 * * mon-fri", zone="Europe/London"), payload=say)
    bill = add(
        "bill-42",
        "echo",
        Cron("30 2 * * *", zone="America/New_York"),
        payload={"text": "bill", "amount": 10},
        owner="team-billing",
        labels={"region": "us"},
        reason="customer 42 has signed",
    )
    scheduler.acting_as("bob").pause(bill.id, reason="the customer disputes the invoice")
    scheduler.acting_as("bob").resume(bill.id, reason="settled with support")
    payload = {"text": "bill", "amount": 12}
    scheduler.update(bill.id, payload=payload, reason="the new price list")
    now = datetime.now(UTC)
    begin, end = now - timedelta(days=24), now - timedelta(days=1)
    scheduler.backfill(bill.id, begin, end, definition="current", reason="the bills of before")
    scheduler.trigger(bill.id, reason="the customer asked for it today")
    export = add("legacy-export", "echo", Every(60), payload=say, owner="team-data")
    scheduler.pause(export.id, reason="moved to the new pipeline")


def take(address: str, scheduler: Scheduler) -> None:
    flaky = scheduler.job("pull-rates").id
    runs = scheduler.occurrences(job_id=flaky, newest_first=True, limit=20)
    story = max(runs, key=lambda run: (run.state == "succeeded", run.version))
    views = (
        ("now", "/"),
        ("job", "/jobs/bill-42"),
        ("run", f"/runs/{story.id}"),
        ("figures", "/figures"),
        ("dead-letters", "/dead-letters"),
        ("partitions", "/partitions"),
        ("projections", "/projections"),
        ("time-travel", "/past?step=900"),
    )
    with browser() as chromium:
        for scheme in ("light", "dark"):
            context = chromium.new_context(
                viewport={"width": 1280, "height": 860}, color_scheme=scheme
            )
            page = context.new_page()
            for name, path in views if scheme == "light" else views[:2]:
                page.goto(address + path)
                page.screenshot(path=str(SCREENSHOTS / _file(name, scheme)))
            context.close()
        context = chromium.new_context(viewport={"width": 390, "height": 844})
        page = context.new_page()
        page.goto(address + "/jobs/bill-42")
        page.locator("summary", has_text="Pause").click()
        page.screenshot(path=str(SCREENSHOTS / "phone.png"))
        context.close()
    sys.stdout.write(f"written to {SCREENSHOTS}\n")


def _file(name: str, scheme: str) -> str:
    return f"{name}.png" if scheme == "light" else f"{name}-{scheme}.png"


if __name__ == "__main__":
    sys.exit(main())
