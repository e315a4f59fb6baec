"""`horolog verify`: the whole log against the invariants, without trusting any projection."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from horolog.interface.cli.main import DONE, REFUSED
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output

if TYPE_CHECKING:
    from horolog.application.verify import Report

MOST_SHOWN = 50
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--chain", is_flag=True,
    help="Check the hash chain instead: no event was changed, taken away or put in.",
)  # fmt: skip
@click.option(
    "--checkpoint", type=FILE, metavar="FILE",
    help="With the chain, and write its digest to a file, to be kept elsewhere.",
)  # fmt: skip
@click.option(
    "--against", type=FILE, metavar="FILE",
    help="With the chain, which must still be what it was at an earlier checkpoint.",
)  # fmt: skip
@at_a_place
def verify(
    place: Place, output: Output, chain: bool, checkpoint: Path | None, against: Path | None
) -> int:
    """Check the whole log and print what was counted; exits 1 on a violation.

    It reads; it changes nothing and stops nobody.
    """
    if chain or checkpoint or against:
        return _verify_chain(place, output, checkpoint, against)
    from horolog.interface.verification import verify_log

    settings = place.settings()
    several = settings.place.logs > 1
    reports: list[dict[str, Any]] = []
    ok = True
    for one in settings.each_log():
        with output.progress(f"reading {one.place}" if several else "reading the log") as advance:
            report = verify_log(one, progress=advance)
        ok = ok and report.ok
        if output.as_json:
            reports.append(({"log": one.place.log} if several else {}) | report.to_dict())
            continue
        if several:
            click.echo(click.style(str(one.place), bold=True))
        _show(output, report)
    if output.as_json:
        output.document({"logs": reports} if several else reports[0])
    return DONE if ok else REFUSED


def _show(output: Output, report: "Report") -> None:
    counts = report.to_dict()
    for name in ("violations", "violation_count"):
        counts.pop(name)
    output.fields({name.replace("_", " "): value for name, value in counts.items()})
    click.echo()
    for violation in report.violations[:MOST_SHOWN]:
        click.echo(f"{click.style('✗', fg='red')} {violation}")
    if report.violation_count > MOST_SHOWN:
        click.echo(f"  … and {report.violation_count - MOST_SHOWN} more (--json has them)")
    verdict = "no violations" if report.ok else f"{report.violation_count} violations"
    click.echo(click.style(verdict, fg="green" if report.ok else "red"))


def _verify_chain(
    place: Place, output: Output, checkpoint: Path | None, against: Path | None
) -> int:
    from horolog.interface.verification import verify_log_chain

    settings = place.settings()
    with output.progress("reading the log") as advance:
        report = verify_log_chain(settings, against=against, save=checkpoint, progress=advance)
    if output.as_json:
        output.document(report)
        return DONE if report.ok else REFUSED
    output.fields(
        {
            "position": report.position,
            "appends": report.links,
            "events": report.events,
            "events pruned": report.pruned,
            "digest": report.digest,
        }
    )
    click.echo()
    for broken in report.breaks[:MOST_SHOWN]:
        click.echo(f"{click.style('✗', fg='red')} {broken}")
    if report.break_count > MOST_SHOWN:
        click.echo(f"  … and {report.break_count - MOST_SHOWN} more (--json has them)")
    verdict = (
        "the chain holds" if report.ok else f"the chain is broken in {report.break_count} places"
    )
    click.echo(click.style(verdict, fg="green" if report.ok else "red"))
    if checkpoint is not None and report.ok:
        click.echo(f"checkpoint written to {checkpoint}")
    return DONE if report.ok else REFUSED
