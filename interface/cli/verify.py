"""`horolog verify`: the whole log against the invariants, without trusting any projection."""

import click

from horolog.interface.cli.main import DONE, REFUSED
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output

MOST_SHOWN = 50


@click.command()
@at_a_place
def verify(place: Place, output: Output) -> int:
    """Check the whole log and print what was counted; exits 1 on a violation.

    It reads; it changes nothing and stops nobody.
    """
    from horolog.interface.verification import verify_log

    settings = place.settings()
    with output.progress("reading the log") as advance:
        report = verify_log(settings, progress=advance)
    if output.as_json:
        output.document(report)
        return DONE if report.ok else REFUSED
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
    return DONE if report.ok else REFUSED
