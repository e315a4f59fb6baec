"""Spans of OpenTelemetry, and the W3C traceparent that names one."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from opentelemetry import context, trace

from horolog.application.tracing import Attribute, Span, SpanKind

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_KINDS: Final[Mapping[SpanKind, trace.SpanKind]] = {
    "internal": trace.SpanKind.INTERNAL,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
}


class OtelSpans:
    """As :class:`horolog.application.tracing.Spans` promises, by the provider that is set up."""

    tracing = True

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("horolog")

    def begin(
        self,
        name: str,
        *,
        kind: SpanKind = "internal",
        parent: str | None = None,
        links: Sequence[str] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Span:
        above = span_context(parent)
        beneath = (
            context.Context()
            if above is None
            else trace.set_span_in_context(trace.NonRecordingSpan(above), context.Context())
        )
        found = (span_context(link) for link in links)
        return OtelSpan(
            self._tracer.start_span(
                name,
                beneath,
                _KINDS[kind],
                attributes,
                [trace.Link(linked) for linked in found if linked is not None],
            )
        )


class OtelSpan:
    """As :class:`horolog.application.tracing.Span` promises."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.traceparent = traceparent_of(span)

    def attach(self) -> Callable[[], None]:
        token = context.attach(trace.set_span_in_context(self._span))
        return lambda: context.detach(token)

    def end(self, failure: str = "", attributes: Mapping[str, Attribute] | None = None) -> None:
        self._span.set_attributes(attributes or {})
        if failure:
            self._span.set_status(trace.StatusCode.ERROR, failure)
        self._span.end()


def traceparent_of(span: trace.Span) -> str | None:
    """The traceparent of a span; ``None`` where it is none that anybody sees."""
    here = span.get_span_context()
    if not here.is_valid:
        return None
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{int(here.trace_flags):02x}"


def span_context(traceparent: str | None) -> trace.SpanContext | None:
    """The span that a traceparent names; ``None`` for none, and for what cannot be read."""
    found = None if traceparent is None else _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    read = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
    return read if read.is_valid else None
