"""The hash chain: whatever is done to a stored event, by whomever, it is found."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.interface.test_verification import played

from horolog import Every, InvalidSetting, JobSpec
from horolog.application.verify import hash_chain as chain
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log_chain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interface.conftest import Stage

    from horolog import Scheduler
    from horolog.application.verify.hash_chain import ChainReport
    from horolog.infrastructure.postgres.database import Database

TRIGGERS = (
    "ALTER TABLE :schema.{} DISABLE TRIGGER USER",
    "ALTER TABLE :schema.{} ENABLE TRIGGER USER",
)


def check(
    database: Database, *, against: Path | None = None, save: Path | None = None
) -> ChainReport:
    settings = Settings.read(database.url, namespace=database.namespace)
    return verify_log_chain(settings, against=against, save=save)


def tamper(database: Database, table: str, statement: str, **params: Any) -> None:
    """As somebody does who may do anything: past the triggers."""
    off, on = TRIGGERS
    with database.session() as connection, connection.transaction():
        connection.execute(database.sql(off.format(table)))
        connection.execute(database.sql(statement), params)
        connection.execute(database.sql(on.format(table)))


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "PAGE", 7)


def test_an_honest_log_holds(database: Database, scheduler: Scheduler, stage: Stage) -> None:
    empty = check(database)
    assert (empty.ok, empty.links, empty.events) == (True, 0, 0)
    played(scheduler, stage)
    for _ in scheduler.register_many(JobSpec("a", schedule=Every(60)) for _ in range(50)):
        pass
    report = check(database)
    assert report.breaks == []
    assert report.events == stage.events()
    assert 0 < report.links < report.events
    assert report.position == scheduler.log(limit=10_000)[-1].position
    assert len(report.digest) == 64


def test_the_chain_holds_while_many_append(
    database: Database, scheduler: Scheduler, stage: Stage
) -> None:
    def register(number: int) -> None:
        for _ in range(10):
            scheduler.register(f"job-{number}", schedule=Every(60))

    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(register, number) for number in range(4)]
        while not all(future.done() for future in done):
            assert check(database).breaks == []
    report = check(database)
    assert (report.breaks, report.events, report.links) == ([], 40, 40)


TAMPERING = {
    "a state": (
        "job_events",
        """UPDATE :schema.job_events
           SET state = convert_to(replace(convert_from(state, 'UTF8'), 'report', 'rapport'), 'UTF8')
           WHERE topic = 'job.registered.1' AND stream = %(job)s""",
        "an event is not what was appended",
    ),
    "a time": (
        "occurrence_events",
        """UPDATE :schema.occurrence_events SET recorded_at = recorded_at + interval '1 us'
           WHERE stream = %(done)s AND version = 1""",
        "an event is not what was appended",
    ),
    "a topic": (
        "occurrence_events",
        """UPDATE :schema.occurrence_events SET topic = 'occurrence.failed.1'
           WHERE stream = %(done)s AND version = 3""",
        "an event is not what was appended",
    ),
    "an event less": (
        "occurrence_events",
        "DELETE FROM :schema.occurrence_events WHERE stream = %(done)s AND version = 3",
        "there are 0 events where 1 should be",
    ),
    "an event more": (
        "occurrence_events",
        """INSERT INTO :schema.occurrence_events
           SELECT nextval(:positions), recorded_at, stream, 4, topic, state
           FROM :schema.occurrence_events WHERE stream = %(done)s AND version = 3""",
        "was not appended, but put in",
    ),
    "a link less": (
        "chain",
        """DELETE FROM :schema.chain WHERE position_to = (
               SELECT position_to FROM :schema.chain ORDER BY 1 OFFSET 3 LIMIT 1)""",
        "a link was changed, taken away or put in",
    ),
    "a link changed": (
        "chain",
        """UPDATE :schema.chain SET content = sha256(content)
           WHERE position_to = (SELECT min(position_to) FROM :schema.chain)""",
        "a link was changed, taken away or put in",
    ),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_whatever_is_done_to_the_log_is_found(
    what: str, database: Database, scheduler: Scheduler, stage: Stage
) -> None:
    ids = played(scheduler, stage)
    table, statement, message = TAMPERING[what]
    tamper(database, table, statement, **ids)
    scheduler.register("afterwards", schedule=Every(60))
    report = check(database)
    assert not report.ok
    assert any(message in broken.message for broken in report.breaks), report.breaks
    assert report.to_dict()["break_count"] == report.break_count >= 1


def rewritten(database: Database) -> None:
    """Everything recomputed after a change, as its author would do it."""
    links = database.query(
        database.sql("SELECT position_from, position_to, events, content FROM :schema.chain")
    )
    before = b""
    for first, last, events, content in sorted(links):
        link = chain.Link(last, first, events, content, b"", None)
        before = chain.digest_of(before, link)
        tamper(
            database,
            "chain",
            "UPDATE :schema.chain SET digest = %(digest)s WHERE position_to = %(last)s",
            digest=before,
            last=last,
        )


def test_a_checkpoint_tells_on_those_who_recompute_the_chain(
    database: Database, scheduler: Scheduler, tmp_path: Path
) -> None:
    for _ in range(5):
        scheduler.register("a", schedule=Every(60))
    kept = tmp_path / "checkpoint.json"
    taken = check(database, save=kept)
    assert json.loads(kept.read_text())["digest"] == taken.digest
    scheduler.register("later", schedule=Every(60))
    assert check(database, against=kept).ok
    tamper(database, "job_events", "DELETE FROM :schema.job_events WHERE position = 2")
    tamper(database, "chain", "DELETE FROM :schema.chain WHERE position_to = 2")
    rewritten(database)
    assert check(database).ok, "there is nothing left to see in the database itself"
    report = check(database, against=kept)
    assert [broken.message for broken in report.breaks] == ["the digest is not the checkpoint's"]
    assert not check(database, against=kept, save=kept).ok
    assert json.loads(kept.read_text())["digest"] == taken.digest, "it is not overwritten"


def test_a_log_that_was_cut_off_no_longer_has_its_checkpoint(
    database: Database, scheduler: Scheduler, tmp_path: Path
) -> None:
    for _ in range(3):
        scheduler.register("a", schedule=Every(60))
    kept = tmp_path / "checkpoint.json"
    check(database, save=kept)
    tamper(database, "job_events", "DELETE FROM :schema.job_events WHERE position = 3")
    tamper(database, "chain", "DELETE FROM :schema.chain WHERE position_to = 3")
    assert check(database).ok
    (broken,) = check(database, against=kept).breaks
    assert "no append that ends at the checkpoint" in broken.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no checkpoint of a log"),
        ("[]", "is no checkpoint of a log"),
        ('{"namespace": "other", "position": 1, "digest": "", "taken_at": "2026-11-30T00:00Z"}',
         "of namespace 'other'"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_checkpoint_is_refused(
    database: Database, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(InvalidSetting, match=message):
        check(database, against=file)
