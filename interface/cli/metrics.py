"""`horolog metrics`: the same looks as the doctor's, as Prometheus' text."""

import click

from horolog.interface.cli.main import DONE, status_of
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output


@click.command()
@at_a_place
def metrics(place: Place, output: Output) -> int:
    """Print metrics as Prometheus' text: lateness, backlog, queues, lanes, leases, letters.

    Exits 3 if a service is away; what the other one says is printed all the same.
    """
    from horolog.application.metrics import metrics as text_of
    from horolog.interface.cli.looks import look_at_queue, look_at_store

    settings = place.settings()
    store, store_error = look_at_store(settings)
    queue, queue_error = look_at_queue(settings)
    if output.as_json:
        output.document({"store": store, "queue": queue})
    else:
        click.echo(text_of(store, queue), nl=False)
    for error in (store_error, queue_error):
        if error is not None:
            click.echo(f"horolog: {' '.join(str(error).split())}", err=True)
            return status_of(error)
    return DONE
