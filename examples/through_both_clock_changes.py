"""Jobs through both clock changes of a year, in simulated time, as the log tells it.

    python examples/through_both_clock_changes.py

In New York in 2027, 02:30 does not exist on 14 March, and 01:30 happens twice on 7 November. Each
line below is an occurrence with the positions of its claim and of its success in the log; nothing
is shown that was not recorded there.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from horolog import Cron, Job, Run, Worker
from horolog.testing import SimulatedScheduler

ZONE = "America/New_York"
CHANGES = (datetime(2027, 3, 14, 4, tzinfo=UTC), datetime(2027, 11, 7, 4, tzinfo=UTC))
worker = Worker()


@worker.handles("reports.close")
def close(run: Run) -> str:
    """Returns what the clock on the wall shows."""
    return f"{run.fire_time.astimezone(ZoneInfo(ZONE)):%a %d %b %H:%M %Z}"


def account(
    scheduler: SimulatedScheduler, job: Job, since: datetime, until: datetime
) -> Iterator[str]:
    """A line for each occurrence of the job between two instants, from its own events."""
    notes = {fire.at: fire.note for fire in job.schedule.between(since, until)}
    for occurrence in scheduler.occurrences(job_id=job.id, since=since, until=until):
        events = {event.topic: event for event in scheduler.history(occurrence.id)}
        claimed, done = events["occurrence.claimed.1"], events["occurrence.succeeded.1"]
        yield (
            f"    {claimed.position:>5} → {done.position:<5}  {occurrence.fire_time:%H:%M}Z"
            f"  {done.data['result']}  {notes.get(occurrence.fire_time, '')}"
        ).rstrip()


def main() -> None:
    start = datetime(2027, 3, 12, 12, tzinfo=UTC)
    with SimulatedScheduler(worker, start=start) as scheduler:

        def daily(hour_and_minute: str, key: str) -> Job:
            schedule = Cron(f"{hour_and_minute} * * *", ZONE)
            return scheduler.register("reports.close", schedule=schedule, key=key)

        half_past_two = daily("30 2", "half past two, which one night does not have")
        half_past_one = daily("30 1", "half past one, which one night has twice")
        half_hours = daily("*/30 0-3", "each half hour from midnight to four, as time elapses")
        for change in CHANGES:
            day = timedelta(days=1)
            scheduler.advance(to=change + 2 * day)
            print(f"{change:%d %B %Y}, {ZONE}")
            for job in (half_past_two, half_past_one):
                print(f"  {job.key}")
                print(*account(scheduler, job, change - day, change + 2 * day), sep="\n")
            print(f"  {half_hours.key}")
            print(*account(scheduler, half_hours, change, change + day), sep="\n")
            print()
        days = (scheduler.now - start).days
        for job in (half_past_two, half_past_one):
            runs = scheduler.occurrences(job_id=job.id, state="succeeded", limit=1_000)
            print(f"{len(runs)} runs in {days} days: {job.key}")
        report = scheduler.verify()
        print(
            f"{report.events} events, {report.succeeded} of {report.occurrences} occurrences"
            f" succeeded, {report.violation_count} violations"
        )


if __name__ == "__main__":
    main()
