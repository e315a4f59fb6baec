"""What a process measures, as instruments of OpenTelemetry's."""

from collections.abc import Callable, Iterable, Mapping

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from horolog.application.measuring import INSTRUMENTS
from horolog.application.standing import GAUGES, Standing


class OtelMeasures:
    """As :class:`horolog.application.measuring.Measures` promises, by the provider that is set up.

    ``standing`` is asked for the gauges each time that they are collected.
    """

    def __init__(self, standing: Callable[[], Standing | None]) -> None:
        meter = metrics.get_meter("horolog")
        self._counters = {
            name: meter.create_counter(_named(name), one.unit, one.help)
            for name, one in INSTRUMENTS.items()
            if one.kind == "counter"
        }
        self._histograms = {
            name: meter.create_histogram(
                _named(name),
                one.unit,
                one.help,
                explicit_bucket_boundaries_advisory=list(one.buckets),
            )
            for name, one in INSTRUMENTS.items()
            if one.kind == "histogram"
        }
        for name, text in GAUGES.items():
            if name not in ("ready", "loop_age_seconds"):
                meter.create_observable_gauge(_named(name), [_looking(standing, name)], "", text)

    def count(self, name: str, number: int = 1, /, **labels: str) -> None:
        self._counters[name].add(number, labels)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        self._histograms[name].record(value, labels)


def _looking(
    standing: Callable[[], Standing | None], name: str
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def look(_: CallbackOptions) -> Iterable[Observation]:
        found = standing()
        gauges: Mapping[str, float] = {} if found is None else found.gauges
        return [Observation(gauges[name])] if name in gauges else []

    return look


def _named(name: str) -> str:
    """The unit is beside the name there, not in it."""
    return f"horolog.{name.removesuffix('_total').removesuffix('_seconds')}"
