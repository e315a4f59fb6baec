"""`horolog alert`: what is too much for an owner, whom to tell, and what was told."""

import shlex
from typing import Any

import click

from horolog.interface.cli.export import Files, exportable, pages, some_or_all
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.main import DONE, REFUSED
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output


@click.group(cls=NamedGroup)
def alert() -> None:
    """Be told of dead letters and missed deadlines, by a command, a webhook or NATS."""


def _chosen(owner: str | None, everybody: bool) -> str | None:
    if everybody == (owner is not None):
        raise click.UsageError(
            "name an OWNER, or give --everybody for all who have no rule of their own",
            click.get_current_context(),
        )
    return owner


@alert.command("set")
@click.argument("owner", required=False)
@click.option("--everybody", is_flag=True, help="All owners without a rule of their own.")
@click.option("--dead-letters", type=int, metavar="N", help="From so many dead letters on.")
@click.option("--age", type=float, metavar="S", help="From a dead letter of so many seconds on.")
@click.option("--deadlines", is_flag=True, help="When a deadline of a job is missed.")
@click.option("--repeat", type=float, default=3600.0, show_default=True, metavar="S",
              help="Told again after so many seconds, while it lasts.")  # fmt: skip
@click.option("--command", metavar="CMD", help="A program and its arguments; run without a shell,"
              " with the notice as JSON on its input.")  # fmt: skip
@click.option("--webhook", metavar="URL", help="Gets the notice as JSON by POST.")
@click.option("--nats", metavar="SUBJECT", help="The notice is published there.")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def set_rule(place: Place, output: Output, **options: Any) -> None:
    """Set the rule of OWNER: what is too much, and whom to tell. It replaces the one before.

    For example: horolog alert set team-billing --dead-letters 10 --age 3600 --deadlines
    --webhook https://hooks.example.com/T0/secret
    """
    owner = _chosen(options["owner"], options["everybody"])
    command = options["command"]
    with place.scheduler() as scheduler:
        scheduler.set_alert(
            owner,
            dead_letters=options["dead_letters"],
            dead_letter_age=options["age"],
            deadlines=options["deadlines"],
            repeat=options["repeat"],
            command=None if command is None else _words(command),
            webhook=options["webhook"],
            nats=options["nats"],
            reason=options["reason"],
        )
        kept = next(rule for rule in scheduler.alert_rules() if rule.owner == owner)
    if output.as_json:
        output.document(kept)
    else:
        output.say(f"{owner or 'everybody'}: {_watched(kept)}; tells {_ways(kept)}")


@alert.command()
@click.argument("owner", required=False)
@click.option("--everybody", is_flag=True, help="The rule of all who have none of their own.")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def remove(
    place: Place, output: Output, owner: str | None, everybody: bool, reason: str | None
) -> None:
    """Remove the rule of OWNER; what it has raised is resolved."""
    chosen = _chosen(owner, everybody)
    with place.scheduler() as scheduler:
        scheduler.remove_alert(chosen, reason=reason)
    if output.as_json:
        output.document({"owner": chosen, "removed": True})
    else:
        output.say(f"the rule of {chosen or 'everybody'} is removed")


@alert.command("list")
@at_a_place
def listing(place: Place, output: Output) -> None:
    """List the rules, and the alerts that hold now."""
    with place.scheduler() as scheduler:
        rules, alerts = scheduler.alert_rules(), scheduler.alerts()
    if output.as_json:
        output.document({"rules": rules, "alerts": alerts})
        return
    output.table(
        ["owner", "watches", "repeats", "tells"],
        [(one.owner or "everybody", _watched(one), f"{one.repeat:g} s", _ways(one))
         for one in rules],
        empty="no rule: horolog alert set",
    )  # fmt: skip
    click.echo()
    output.table(
        ["owner", "holds", "since", "value", "threshold", "told", "not reached"],
        [
            (one.owner or "-", one.condition, one.since, one.value, one.threshold, one.told_at,
             ", ".join(one.unreached) or "-")
            for one in alerts
        ],
        empty="no alert holds",
    )  # fmt: skip


@alert.command()
@click.option("--owner", metavar="WHO", help="Only this owner's.")
@click.option("--after", type=int, default=0, metavar="N", help="Go on after this position.")
@some_or_all(100)
@exportable
@at_a_place
def history(
    place: Place,
    output: Output,
    owner: str | None,
    after: int,
    limit: int | None,
    files: Files,
) -> None:
    """What was raised, repeated and resolved, who was told, and who set which rule."""
    from horolog.application.answers.logged_event import LoggedEvent
    from horolog.interface.cli.event_listing import show_events

    with place.scheduler() as scheduler:
        if files:
            events = pages(
                lambda behind, size: scheduler.alert_history(owner=owner, after=behind, limit=size),
                lambda event: event.position,
                after,
                limit,
            )
            files.write(output, events, LoggedEvent)
            return
        found = scheduler.alert_history(owner=owner, after=after, limit=limit or 100)
        show_events(output, scheduler, found)


@alert.command()
@click.argument("owner", required=False)
@click.option("--everybody", is_flag=True, help="The rule of all who have none of their own.")
@at_a_place
def test(place: Place, output: Output, owner: str | None, everybody: bool) -> int:
    """Send a test notice to every way of OWNER's rule, from this machine.

    Exits 1 if one of them does not take it.
    """
    from horolog.interface.alerting import try_rule

    chosen = _chosen(owner, everybody)
    with place.scheduler() as scheduler:
        rule = scheduler.alert_rule(chosen)
    trials = try_rule(rule, place.settings())
    if output.as_json:
        output.document(trials)
    for trial in [] if output.as_json else trials:
        output.say(f"{trial.way}: {trial.error or 'taken'}")
    if not trials and not output.as_json:
        output.say("the rule tells nobody: give it --command, --webhook or --nats")
    return REFUSED if any(trial.error for trial in trials) else DONE


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"--command cannot be read: {error}") from error


def _watched(rule: Any) -> str:
    parts: list[str] = []
    if rule.dead_letters is not None:
        parts.append(f"{rule.dead_letters} dead letters")
    if rule.dead_letter_age is not None:
        parts.append(f"one of {rule.dead_letter_age:g} s")
    if rule.deadlines:
        parts.append("missed deadlines")
    return ", ".join(parts)


def _ways(rule: Any) -> str:
    return ", ".join(f"{way} {where}" for way, where in rule.ways.items()) or "nobody"
