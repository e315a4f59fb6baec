"""Commands of a client as spans, where the program has loaded OpenTelemetry; else nothing."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

_API = "opentelemetry.trace"


def traced(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """The method, in a span of its own that its events name."""
    name = f"horolog.{method.__name__}"

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if _API not in sys.modules:
            return method(self, *args, **kwargs)
        from opentelemetry import trace

        tracer = trace.get_tracer("horolog")
        with tracer.start_as_current_span(
            name, kind=trace.SpanKind.PRODUCER, record_exception=False
        ):
            return method(self, *args, **kwargs)

    return call


def current_traceparent() -> str | None:
    """The present span, for the log; ``None`` where nobody traces."""
    if _API not in sys.modules:
        return None
    from opentelemetry import trace

    from horolog.infrastructure.otel.spans import traceparent_of

    return traceparent_of(trace.get_current_span())
