"""OpenTelemetry for one process: spans and measurements go where the OTEL_… variables say.

    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER, …

They are read by OpenTelemetry itself. What waits to be sent is bounded, and dropped when the
collector is away: nobody's run waits for it.
"""

from collections.abc import Generator
from contextlib import contextmanager

from horolog.domain.errors import InvalidSetting
from horolog.interface.processes.monitor import Monitor


@contextmanager
def telemetry(monitor: Monitor, role: str) -> Generator[None]:
    """Sets up the providers, connects the monitor to them, and sends the rest at the end.

    Raises ``InvalidSetting`` where OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise InvalidSetting(
            f"--otel needs OpenTelemetry ({error}): pip install 'horolog[otel]'"
        ) from None
    from horolog.infrastructure.otel.measures import OtelMeasures
    from horolog.infrastructure.otel.spans import OtelSpans

    named = Resource.create({"service.name": f"horolog-{role}"})
    resource = named.merge(OTELResourceDetector().detect())
    tracing = TracerProvider(resource=resource)
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    metering = MeterProvider(
        [PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource
    )
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(metering)
    monitor.spans = OtelSpans()
    monitor.join(OtelMeasures(monitor.standing))
    try:
        yield
    finally:
        tracing.shutdown()
        metering.shutdown()
