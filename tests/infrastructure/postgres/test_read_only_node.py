"""A node that was demoted keeps its sessions open and refuses each write: they are left at once."""

from uuid import uuid4

from horolog.application.decision import Decision, decide_on_job
from horolog.domain.definition import JobDefinition
from horolog.domain.ids import partition_of
from horolog.domain.job import decide_registration
from horolog.domain.origin import Origin
from horolog.infrastructure.postgres.clock import PostgresClock
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog


def registration(database: Database) -> Decision:
    job_id = uuid4()
    events = decide_registration(
        JobDefinition(name="a", schedule={"kind": "every", "seconds": 60.0}),
        partition=partition_of(str(job_id), 64),
        key=None,
        now=PostgresClock(database).now(),
        origin=Origin("ann"),
    )
    return decide_on_job(None, job_id, events)[0]


def demoted(database: Database) -> int:
    """The pooled session as after a failover; its process."""
    with database.connection() as connection:
        connection.execute("SET default_transaction_read_only = on")
        return connection.info.backend_pid


def test_an_append_that_meets_a_read_only_session_is_made_on_another(database: Database) -> None:
    decision = registration(database)
    refused = demoted(database)
    assert PostgresLog(database).append([decision]).verdicts == ["accepted"]
    with database.connection() as connection:
        assert connection.info.backend_pid != refused
    assert database.query(database.sql("SELECT count(*) FROM :schema.jobs")) == [(1,)]
