"""The guide to asking the log: what ran, who changed what, and what has left for the archive."""

from datetime import timedelta

from tests.acceptance.conftest import eventually
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.granted import a_job
from tests.acceptance.guides.guide import Guide, Says
from tests.acceptance.shown import blocks
from tests.acceptance.test_log_keeping import OLD


def of_the_log(desk: Desk) -> None:
    a_job(desk)
    *_, program = [
        text for language, text in blocks("docs/asking-the-log.md") if language == "python"
    ]
    desk.write("reports.py", program)


def an_old_run(desk: Desk) -> None:
    """From here on the guide speaks of what has left the log."""
    desk.words |= {"ID": desk.words["OLD"], "T": (OLD - timedelta(days=1)).isoformat()}


def after_the_log(desk: Desk) -> None:
    if desk.processes:
        followed = lambda: "failures" in desk.ask("doctor", "--json").out  # noqa: E731
        eventually(followed)


ASKING_THE_LOG = Guide(
    "asking-the-log", of_the_log,
    says={
        "horolog audit runs": Says(("nightly", "succeeded", "dead")),
        "horolog audit stats": Says(("report",)),
        "horolog audit due T": Says(("report",)),
        "horolog audit runs --since T --archive DIR": Says(("succeeded",)),
        "horolog occurrence explain ID": Says(("one extra run", "nobody has claimed it")),
        "horolog job changes nightly": Says(("paused", "guide", "the disk is full")),
        "horolog log --topic job.paused.1": Says(("guide", "the disk is full")),
        "horolog retention --older-than DAYS --archive DIR": Says(("pruned: 1 occurrences",)),
        "horolog occurrence explain ID --archive DIR": Says(("occurrences-", "succeeded")),
        "horolog occurrence history ID --archive DIR": Says(("occurrences-",)),
    },
    before={"horolog retention --older-than DAYS --archive DIR": an_old_run},
    starts=("horolog projection run reports:Failures",),
    then=after_the_log,
)  # fmt: skip
