"""`horolog doctor`: what there is to see, what needs attention, and what to do about it."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from horolog.interface.cli.main import DONE, REFUSED, status_of
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output, on_one_line

if TYPE_CHECKING:
    from horolog.application.diagnosis import Finding
    from horolog.application.health import QueueHealth, StoreHealth
    from horolog.domain.errors import HorologError
    from horolog.interface.settings import Settings

T = TypeVar("T")


@click.command()
@at_a_place
def doctor(place: Place, output: Output) -> int:
    """Look at Postgres, NATS, scanners, workers, lateness, queues and dead letters.

    Exits 1 if something needs attention, 3 if a service is away.
    """
    from horolog.application.diagnosis import findings

    settings = place.settings()
    store, store_error = _looked_at(lambda: _store(settings))
    queue, queue_error = _looked_at(lambda: _queue(settings))
    found = findings(
        store, queue, store_error=str(store_error or ""), queue_error=str(queue_error or "")
    )
    if output.as_json:
        output.document(
            {
                "healthy": not any(finding.needs_attention for finding in found),
                "store": store,
                "queue": queue,
                "findings": found,
            }
        )
    else:
        _show(output, settings, store, queue, found)
    for error in (store_error, queue_error):
        if error is not None:
            return status_of(error)
    return REFUSED if any(finding.needs_attention for finding in found) else DONE


def _looked_at(look: Callable[[], T]) -> "tuple[T | None, HorologError | None]":
    """What there was to see, or why nothing was."""
    from horolog.domain.errors import HorologError

    try:
        return look(), None
    except HorologError as error:
        return None, error


def _store(settings: "Settings") -> "StoreHealth":
    from horolog.infrastructure.postgres.database import Database
    from horolog.infrastructure.postgres.health import PostgresHealth

    database = Database(settings.database_url(), settings.namespace)
    try:
        return PostgresHealth(database).store_health()
    finally:
        database.close()


def _queue(settings: "Settings") -> "QueueHealth":
    from horolog.infrastructure.nats.health import NatsHealth

    return asyncio.run(NatsHealth(settings.nats_url(), settings.namespace).queue_health())


def _show(
    output: Output,
    settings: "Settings",
    store: "StoreHealth | None",
    queue: "QueueHealth | None",
    found: "list[Finding]",
) -> None:
    output.fields(_store_fields(settings, store) | _queue_fields(queue) | _counter_fields(store))
    click.echo()
    for finding in found:
        mark = click.style("!", fg="red", bold=True) if finding.needs_attention else "·"
        click.echo(f"{mark} {on_one_line(finding.what)}")
        if finding.do:
            click.echo(f"    {on_one_line(finding.do)}")
    if not any(finding.needs_attention for finding in found):
        click.echo(click.style("nothing needs attention", fg="green"))


def _store_fields(settings: "Settings", store: "StoreHealth | None") -> dict[str, Any]:
    if store is None:
        return {"namespace": settings.namespace, "postgres": "see below"}
    scanners, workers = store.alive("scanner"), store.alive("worker")
    late_s = [late for one in scanners if isinstance(late := one.details.get("lateness_s"), float)]
    leaders = ", ".join(f"{name} {count}" for name, count in sorted(store.leaders.items()))
    return {
        "namespace": settings.namespace,
        "postgres": f"{store.server}, {store.round_trip_s * 1000:.1f} ms away",
        "schema": f"{store.schema} of {store.schema_of_code}",
        "clock": f"the database's is {store.clock_offset_s * 1000:+.1f} ms from this machine's",
        "log": f"{store.position} events; the inline projections are level with it",
        "jobs": ", ".join(f"{count} {status}" for status, count in sorted(store.jobs.items())),
        "alive": f"scanners {len(scanners)}, workers {len(workers)}",
        "partitions": f"{store.partitions}, of which {store.unowned} without a leader",
        "leaders": leaders,
        "last claims": f"at most {max(late_s) * 1000:.1f} ms late" if late_s else None,
        "late fires": f"{store.late_fires}, the oldest by {store.lateness_s:.3f} s"
        if store.late_fires
        else "none",
        "overdue looks": store.overdue_looks or "none",
        "unpublished": store.unpublished or "none",
        "unfinished": ", ".join(f"{w.count} {w.state} of {w.name}" for w in store.waiting)
        or "none",
        "dead letters": ", ".join(
            f"{d.depth} of {d.owner}" if d.owner else f"{d.depth} without an owner"
            for d in store.dead_letters
        )
        or "none",
    }


def _queue_fields(queue: "QueueHealth | None") -> dict[str, Any]:
    if queue is None:
        return {"nats": "away"}
    depths = ", ".join(f"{q.queue}: {q.waiting} waiting, {q.held} held" for q in queue.queues)
    return {
        "nats": queue.server,
        "ready queue": depths or ("no queue yet" if queue.stream else "no stream yet"),
        "messages": f"{queue.messages} in {queue.bytes} bytes" if queue.stream else None,
    }


def _counter_fields(store: "StoreHealth | None") -> dict[str, Any]:
    if store is None:
        return {}
    return {name.replace("_", " "): value for name, value in sorted(store.counters.items())}
