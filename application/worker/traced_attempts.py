"""The span of an attempt: in the trace of the command that ordered just this run, or in its own."""

from horolog.application.tracing import Span, Spans
from horolog.application.worker.attempt import Attempt


def attempt_span(spans: Spans, attempt: Attempt) -> Span:
    """Begins it. What is linked: the claim, the message, and a command that ordered more runs."""
    ready, message = attempt.ready, attempt.held.message.traceparent
    parent = ready.ordered_in if ready.ordered_alone else None
    linked = (ready.claimed_in, message, None if parent else ready.ordered_in)
    return spans.begin(
        f"horolog.attempt {ready.name}",
        kind="consumer",
        parent=parent,
        links=[link for link in linked if link is not None],
        attributes={
            "messaging.system": "nats",
            "horolog.handler": ready.name,
            "horolog.queue": ready.queue,
            "horolog.job": str(ready.job),
            "horolog.occurrence": str(ready.occurrence),
            "horolog.attempt": ready.attempt,
            "horolog.kind": ready.kind,
            "horolog.fire_time": ready.fire_time.isoformat(),
        },
    )
