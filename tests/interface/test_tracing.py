"""One story over three processes' spans: registration, claim, publishing, attempt, outcome."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from horolog import Every, Once, Permanent, Run, Scheduler, Worker
from horolog.application.scanner.settings import ScannerSettings
from horolog.infrastructure.otel import spans as otel
from horolog.infrastructure.otel.spans import OtelSpans, span_context
from horolog.infrastructure.postgres.database import Database
from horolog.interface.processes.monitor import Monitor
from horolog.interface.processes.scanner import run_scanner
from horolog.interface.processes.worker import run_worker

SECRET = "4111-1111"


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Generator[InMemorySpanExporter]:
    """What a provider of this test's own sends."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name.startswith(name)]


def ids(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def linked(span: ReadableSpan) -> set[tuple[int, int]]:
    return {(link.context.trace_id, link.context.span_id) for link in span.links}


async def test_spans_link_a_command_with_its_run_across_processes(
    database: Database, scheduler: Scheduler, nats_url: str, stage: Any,
    exported: InMemorySpanExporter,
) -> None:  # fmt: skip
    worker = Worker()

    @worker.handles("once")
    async def once(run: Run, card: str) -> str:
        with trace.get_tracer("users").start_as_current_span("charge"):
            return card

    @worker.handles("again")
    def again(run: Run, card: str) -> None:
        with trace.get_tracer("users").start_as_current_span("mail"):
            raise Permanent(f"no {card}")

    stop = asyncio.Event()
    where: dict[str, Any] = {
        "database_url": database.url, "nats_url": nats_url, "namespace": database.namespace,
        "stop": stop,
    }  # fmt: skip
    monitors = [Monitor(dead_after_s=30), Monitor(dead_after_s=30)]
    for monitor in monitors:
        monitor.spans = OtelSpans()
    tracer = trace.get_tracer("client")
    with tracer.start_as_current_span("request") as request:
        one = scheduler.register("once", schedule=Once(stage.now()), payload={"card": SECRET})
        two = scheduler.register("again", schedule=Every(0.2, limit=1), payload={"card": SECRET})
    tasks = [
        asyncio.create_task(run_scanner(**where, settings=ScannerSettings(), monitor=monitors[0])),
        asyncio.create_task(run_worker(worker, **where, monitor=monitors[1])),
    ]
    deadline = time.monotonic() + 20
    while len(named(exported, "horolog.attempt")) < 2:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    stop.set()
    await asyncio.gather(*tasks)

    first, second = named(exported, "horolog.register")
    claims = {ids(span) for span in named(exported, "horolog.claim")}
    publishes = {ids(span) for span in named(exported, "horolog.publish")}
    (attempt,), (recurring,) = (
        named(exported, f"horolog.attempt {name}") for name in ("once", "again")
    )
    # A one-off is part of the request's trace; a recurring job's run is linked to it.
    assert attempt.parent is not None
    assert ids(attempt)[0] == request.get_span_context().trace_id
    assert (attempt.parent.trace_id, attempt.parent.span_id) == ids(first)
    assert recurring.parent is None
    assert ids(second) in linked(recurring)
    for span in (attempt, recurring):
        assert linked(span) & claims
        assert linked(span) & publishes
    for span in named(exported, "horolog.publish"):
        assert linked(span) <= claims
    assert {ids(first), ids(second)} <= set[Any]().union(
        *(linked(span) for span in named(exported, "horolog.claim"))
    )
    # What the handler did is below its attempt, in a task and in a thread.
    for inner, outer in (("charge", attempt), ("mail", recurring)):
        (found,) = named(exported, inner)
        assert found.parent is not None
        assert found.parent.span_id == ids(outer)[1]
    assert attempt.attributes is not None
    assert recurring.attributes is not None
    assert attempt.attributes["horolog.outcome"] == "succeeded"
    assert recurring.attributes["horolog.outcome"] == "dead_lettered"
    assert recurring.status.description == "permanent"
    # The log names the spans, and nobody's payload is in any of ours.
    registered = scheduler.history(one.id)[0].event.traceparent
    assert span_context(registered) is not None
    (run,) = scheduler.occurrences(job_id=two.id)
    outcome = scheduler.history(run.id)[-2].event.traceparent
    assert outcome is not None
    assert f"{ids(recurring)[1]:016x}" in outcome
    ours = [span for span in exported.get_finished_spans() if span.name.startswith("horolog.")]
    assert SECRET not in json.dumps([json.loads(span.to_json()) for span in ours])


def test_a_command_within_a_transaction_keeps_its_trace(
    database: Database, scheduler: Scheduler, exported: InMemorySpanExporter
) -> None:
    import psycopg

    with psycopg.connect(database.url) as connection:
        job = scheduler.register("a", schedule=Every(60), connection=connection)
    assert scheduler.job(job.id).version == 1
    (span,) = named(exported, "horolog.register")
    traceparent = scheduler.history(job.id)[0].event.traceparent
    assert traceparent is not None
    assert f"{ids(span)[1]:016x}" in traceparent


def test_where_nobody_traces_the_log_has_no_word_of_it(
    scheduler: Scheduler, database: Database
) -> None:
    scheduler.register("a", schedule=Every(60))
    ((state,),) = database.query(database.sql("SELECT state FROM :schema.job_events"))
    assert b"traceparent" not in bytes(state)


@pytest.mark.parametrize("text", [None, "", "00-0-0-00", f"00-{'0' * 32}-{'0' * 16}-01", "x" * 55])
def test_a_traceparent_that_is_none_links_to_nothing(text: str | None) -> None:
    assert otel.span_context(text) is None


def test_a_client_pays_nothing_for_what_it_does_not_use() -> None:
    program = (
        "import sys, horolog; from horolog import Scheduler, Worker;"
        "from horolog.interface.processes import scanner, worker;"
        "print([m for m in sys.modules if m.startswith(('opentelemetry', 'http.server'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
