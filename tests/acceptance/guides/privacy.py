"""The guide to payloads that are secret: revealed, forgotten for good, and under a new key."""

from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.granted import programs
from tests.acceptance.guides.guide import Guide, Says

from horolog import Cron

FORGET = 'horolog forget customer-42 --reason "request 2027-113"'


def of_privacy(desk: Desk) -> None:
    desk.words["JOB"] = "bills"


def a_subject(desk: Desk) -> None:
    """The guide's own registration, with a key to find it by."""
    (program,) = programs("docs/privacy.md", "python")
    keyed = program.replace("    subject=", '    key="bills",\n    subject=')
    with desk.scheduler() as scheduler:
        exec(compile(keyed, "docs/privacy.md", "exec"), {"scheduler": scheduler, "Cron": Cron})
    assert "4111" not in desk.ask("job", "show", "bills").out


def a_new_master_key(desk: Desk) -> None:
    """It was forgotten for good; and a new key is put before the old one."""
    assert "4111" not in desk.ask("job", "show", "bills", "--reveal").out
    assert "request 2027-113" in desk.ask("log", "--topic", "subject.forgotten").out
    with desk.scheduler() as scheduler:
        scheduler.register(
            "invoices.bill", schedule=Cron("0 2 * * *", zone="UTC"), payload={"card": "4222"},
            subject="customer-43", key="other",
        )  # fmt: skip
    old = desk.terminal.environment["HOROLOG_MASTER_KEY"]
    new = desk.ask("privacy", "new-key").out.strip()
    desk.terminal.environment["HOROLOG_MASTER_KEY"] = f"{new},{old}"


def after_privacy(desk: Desk) -> None:
    """The old one can be taken away."""
    keys = desk.terminal.environment["HOROLOG_MASTER_KEY"].split(",")
    desk.terminal.environment["HOROLOG_MASTER_KEY"] = keys[0]
    assert "4222" in desk.ask("job", "show", "other", "--reveal").out
    assert desk.ask("privacy", "status").status == 0


PRIVACY = Guide(
    "privacy", of_privacy,
    says={
        "horolog job show JOB --reveal": Says(("4111 1111 1111 1111",)),
        FORGET: Says(("for good?",), typed="y"),
    },
    before={
        "horolog job show JOB --reveal": a_subject,
        "horolog privacy rotate": a_new_master_key,
    },
    then=after_privacy,
)  # fmt: skip
