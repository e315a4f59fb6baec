"""`horolog forget`: the data of one subject becomes unreadable, for good."""

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output


@click.command()
@click.argument("subject", metavar="SUBJECT")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@at_a_place
def forget(place: Place, output: Output, subject: str, reason: str | None, yes: bool) -> None:
    """Erase the data of SUBJECT: destroy its key, cancel its jobs.

    Its payloads, results and error messages can be read by nobody afterwards, and no job of it can
    be registered again. It cannot be undone. For example:
    horolog forget customer-42 --reason "request 2027-113" --yes
    """
    if not yes:
        click.confirm(f"Erase the data of {subject!r} for good?", abort=True, err=True)
    with place.scheduler() as scheduler:
        done = scheduler.forget(subject, reason=reason)
    if output.as_json:
        output.document(done)
        return
    was = "was forgotten before" if done.already else "is forgotten"
    output.say(
        f"{subject} {was} ({done.forgotten_at.isoformat(timespec='seconds')}):"
        f" {done.jobs_cancelled} jobs cancelled,"
        f" {done.dead_letters_discarded} dead letters discarded"
    )
