"""The guide to time: a schedule looked at before it is kept, and jobs declared in a file."""

from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.granted import a_job, programs
from tests.acceptance.guides.guide import Guide, Says


def of_time(desk: Desk) -> None:
    a_job(desk)
    (declared,) = programs("docs/time.md", "toml")
    desk.write("jobs.toml", declared)
    desk.words["FILE"] = "jobs.toml"


def after_time(desk: Desk) -> None:
    """A second time there is nothing left to do."""
    assert "bill-ann" in desk.answers["horolog job apply FILE"].out
    again = desk.ask("job", "apply", "jobs.toml")
    assert "0 created, 0 changed, 0 pruned, 1 unchanged" in again.out


TIME = Guide(
    "time", of_time,
    says={
        'horolog schedule preview --cron "30 2 * * *" --zone America/New_York'
        " --after 2027-03-12T00:00:00Z --month": Says(("clock change",)),
        "horolog job apply FILE": Says(("bill-ann",)),
    },
    then=after_time,
)  # fmt: skip
