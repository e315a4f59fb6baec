"""Commands that a client gave in a transaction of its own: carried out if that was committed."""

from collections import Counter
from uuid import UUID

from tests.simulation.model.account import Account


def check_given(account: Account) -> None:
    """A command of a client's transaction is carried out once, if that was committed."""
    said = Counter(
        event.state.get("correlation")
        for event in account.events
        if event.kind in ("registered", "triggered", "payload_changed")
    )
    for entry in account.world.inbox.entries:
        command, number = entry.document["command"], said[entry.document["correlation"]]
        fate = f"the {command} of job {entry.job_id} is {entry.fate}"
        if entry.fate in ("open", "waiting"):
            account.say(f"{fate} for ever")
        if number != (entry.fate == "carried out"):
            account.say(f"{fate}, and the log has it {number} times")
        if entry.fate == "set aside" and not _may_be_refused(account, entry.job_id):
            account.say(f"{fate}, and nothing stood against it: {entry.error}")


def _may_be_refused(account: Account, identity: UUID) -> bool:
    """A job that ended, or never was, takes no commands."""
    job = account.jobs.get(identity)
    return job is None or job.cancelled is not None or job.spec["schedule"]["kind"] == "once"
