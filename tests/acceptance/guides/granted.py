"""What guides take for granted: jobs with a past, programs that they show, a free port."""

import contextlib
import socket
from collections.abc import Generator
from datetime import UTC, datetime
from uuid import UUID

from tests.acceptance.guides.desk import Desk
from tests.acceptance.shown import blocks
from tests.acceptance.test_log_keeping import OLD, make_months
from tests.interface.conftest import Stage

from horolog import Cron
from horolog.infrastructure.postgres.database import Database


@contextlib.contextmanager
def on_stage(desk: Desk) -> Generator[Stage]:
    """What leaders and workers would append, without any."""
    database = Database(desk.database_url, desk.namespace)
    with contextlib.closing(database), desk.scheduler() as scheduler:
        stage = Stage(database, scheduler)
        yield stage
        stage.leave()


def a_job(desk: Desk) -> None:
    """A nightly one, paused once; a run that is old, one that is dead and one that waits."""
    with on_stage(desk) as stage:
        nightly = stage.scheduler.register(
            "report", schedule=Cron("30 2 * * *", zone="America/New_York"), key="nightly",
            owner="billing",
        )  # fmt: skip
        stage.scheduler.pause(nightly.id, reason="the disk is full")
        stage.scheduler.resume(nightly.id, reason="it is not")
        make_months(desk.terminal, 6)
        old = stage.scheduler.trigger(nightly.id, at=OLD)
        stage.succeed(stage.attempt(stage.claim(UUID(str(old.id)))))
        failing = stage.scheduler.trigger(nightly.id)
        stage.fail(stage.attempt(stage.claim(UUID(str(failing.id)))))
        run = stage.scheduler.trigger(nightly.id)
    now = datetime.now(UTC).isoformat()
    desk.words |= {
        "JOB": "nightly", "ID": str(run.id), "OLD": str(old.id), "TEAM": "billing",
        "DIR": "archive", "DAYS": "30", "T": now, "2027-03-01T08:00:00+01:00": now,
    }  # fmt: skip


def programs(document: str, language: str) -> list[str]:
    return [text for written_in, text in blocks(document) if written_in == language]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
