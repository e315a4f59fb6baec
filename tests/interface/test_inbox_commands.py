"""What was committed and refused is found, tried again and forgotten by the command line."""

import json
from typing import Any

import psycopg
import pytest

from horolog import Every, Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.interface.cli.main import run
from horolog.interface.wiring import draining


def test_what_was_set_aside_is_listed_tried_again_and_forgotten(
    database: Database, scheduler: Scheduler, capsys: pytest.CaptureFixture[str]
) -> None:
    def horolog(*arguments: str, status: int = 0) -> Any:
        place = ("--database-url", database.url, "--namespace", database.namespace)
        assert run(["inbox", *arguments, *place]) == status
        said = capsys.readouterr()
        return json.loads(said.out) if "--json" in arguments else said.out + said.err

    drain = draining(database, PostgresStates(database), "scanner")
    job = scheduler.register("ping", schedule=Every(3600))
    assert horolog("list").strip() == "nothing waits, and nothing was set aside"
    with psycopg.connect(database.url) as connection:
        scheduler.pause(job.id, connection=connection)
        scheduler.cancel(job.id)
    (waits,) = horolog("list", "--json")
    assert (waits["command"], waits["actor"], waits["refused_at"]) == ("pause", "ann", None)
    assert horolog("list", "--json", "--refused") == []
    drain.drain(range(64))
    (aside,) = horolog("list", "--json", "--refused")
    assert "it is cancelled" in aside["error"]
    assert "waits for its leader again" in horolog("retry", str(aside["id"]))
    assert horolog("list", "--json", "--refused") == []
    drain.drain(range(64))
    assert "is forgotten" in horolog("discard", str(aside["id"]))
    assert horolog("list", "--json") == []
    assert "no command" in horolog("discard", str(aside["id"]), status=1)
