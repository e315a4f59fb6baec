"""What a trigger or a backfill ordered can be told from its event alone."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from horolog.domain.definition import JobDefinition
from horolog.domain.ids import occurrence_id
from horolog.domain.job import JobState
from horolog.domain.job_events import BackfillRequested, Paused, Triggered
from horolog.domain.orders import ordered_by
from horolog.domain.schedule import Every

START = datetime(2027, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DEFINITION = JobDefinition(name="report", schedule=Every(60, anchor=START).to_json())
JOB = JobState(UUID(int=1), 4, "active", 3, DEFINITION)


def test_a_trigger_orders_one_run_at_its_time() -> None:
    triggered = Triggered(occurrence_id=UUID(int=9), fire_time=START)
    (run,) = ordered_by(JOB, triggered, START - HOUR)
    assert (run.id, run.job_id, run.partition, run.kind) == (UUID(int=9), JOB.id, 3, "trigger")
    assert (run.state, run.version, run.fire_time, run.due) == ("scheduled", 0, START, START)


def test_a_backfill_orders_its_fire_times_one_after_the_other() -> None:
    fires = [START, START + HOUR, START + 2 * HOUR]
    asked = BackfillRequested(
        start=START, end=fires[-1], fires=fires, due=START + 9 * HOUR, spacing_s=2.5
    )
    runs = ordered_by(JOB, asked, START)
    assert [run.id for run in runs] == [occurrence_id(JOB.id, fire) for fire in fires]
    assert [run.fire_time for run in runs] == fires
    began = [asked.due + timedelta(seconds=s) for s in (0, 2.5, 5)] if asked.due else []
    assert [run.due for run in runs] == began


def test_a_backfill_without_a_time_is_due_when_it_was_recorded() -> None:
    asked = BackfillRequested(start=START, end=START, fires=[START], definition_version=2)
    (run,) = ordered_by(JOB, asked, START + HOUR)
    assert (run.due, run.definition_version) == (START + HOUR, 2)


def test_a_repetition_of_what_has_run_has_keys_of_its_own() -> None:
    first, again, other = (
        ordered_by(JOB, BackfillRequested(start=START, end=START, fires=[START], salt=salt), START)[
            0
        ]
        for salt in ("", "a", "b")
    )
    assert len({first.id, again.id, other.id}) == 3


def test_other_events_order_nothing() -> None:
    assert ordered_by(JOB, Paused(), START) == []
