"""`horolog doctor`: what there is to see, what needs attention, and what to do about it."""

from typing import TYPE_CHECKING, Any

import click

from horolog.interface.cli.main import DONE, REFUSED, status_of
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output, on_one_line
from horolog.interface.cli.watch import watchable

if TYPE_CHECKING:
    from horolog.application.diagnosis import Finding
    from horolog.application.health import Instance, Lateness, QueueHealth, StoreHealth
    from horolog.interface.settings import Settings


@click.command()
@watchable
@at_a_place
def doctor(place: Place, output: Output) -> int:
    """Look at Postgres, NATS, scanners, workers, lateness, queues and dead letters.

    Exits 1 if something needs attention, 3 if a service is away.
    """
    from horolog.application.diagnosis import findings
    from horolog.interface.cli.looks import look_at_queue, look_at_store

    settings = place.settings()
    several = settings.place.logs > 1
    statuses: list[int] = []
    documents: list[dict[str, Any]] = []
    for one in settings.each_log():
        store, store_error = look_at_store(one)
        queue, queue_error = look_at_queue(one)
        found = findings(
            store, queue, store_error=str(store_error or ""), queue_error=str(queue_error or "")
        )
        found += _of_the_master_keys(one)
        attention = any(finding.needs_attention for finding in found)
        if output.as_json:
            documents.append(
                ({"log": one.place.log} if several else {})
                | {"healthy": not attention, "store": store, "queue": queue, "findings": found}
            )
        else:
            if several:
                click.echo(click.style(str(one.place), bold=True))
            _show(output, one, store, queue, found)
        errors = [error for error in (store_error, queue_error) if error is not None]
        statuses.append(status_of(errors[0]) if errors else REFUSED if attention else DONE)
    if output.as_json:
        output.document({"logs": documents} if several else documents[0])
    return max(statuses)


def _of_the_master_keys(settings: "Settings") -> list["Finding"]:
    """What a worker or a client would only say when it first needs them."""
    from horolog.application.diagnosis import Finding
    from horolog.domain.errors import InvalidSetting

    try:
        settings.master_keys()
    except InvalidSetting as error:
        return [Finding(str(error), "correct it here and wherever processes have it from")]
    return []


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
        "claimed": _late(store.claims_late),
        "started": _late(store.starts_late),
        "late fires": f"{store.late_fires}, the oldest by {store.lateness_s:.3f} s"
        if store.late_fires
        else "none",
        "waiting for a slot": store.slot_waits or None,
        "held back": sum(_details(scanners, "held_back")) or None,
        "in the time wheel": sum(_details(scanners, "wheel")) or None,
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


def _late(late: "Lateness") -> str | None:
    """How late the last fires were, from their nominal times."""
    if not late.count:
        return None
    return (
        f"of the last {late.count}, half within {late.p50_s * 1000:.1f} ms, 99 % within"
        f" {late.p99_s * 1000:.1f} ms, all within {late.worst_s * 1000:.1f} ms"
    )


def _details(scanners: "list[Instance]", name: str) -> list[int]:
    return [value for one in scanners if isinstance(value := one.details.get(name), int)]


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
