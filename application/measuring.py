"""What a process measures of itself as it works: counts, and distributions of seconds and sizes.

The loops say what happened to a :class:`Measures`; who listens is wired at the process's top.
Where nobody does, a measurement is a call that does nothing. Names and buckets stand here, in one
place, so that dashboards and alerts can be held to them.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal, Protocol

Labels = tuple[tuple[str, str], ...]

SECONDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
    3600.0,
)  # fmt: skip
SIZES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)


@dataclass(frozen=True, slots=True)
class Instrument:
    """``unit`` is what its values are in, as OpenTelemetry writes it; a histogram has buckets."""

    kind: Literal["counter", "histogram"]
    help: str
    unit: str = "1"
    buckets: tuple[float, ...] = ()


def _seconds(text: str) -> Instrument:
    return Instrument("histogram", text, "s", SECONDS)


INSTRUMENTS: Final[Mapping[str, Instrument]] = {
    "signals_total": Instrument("counter", "What a scanner did, by event."),
    "attempts_total": Instrument("counter", "Attempts that ended, by handler, outcome and class."),
    "worker_events_total": Instrument("counter", "What a worker met that is odd, by event."),
    "claim_lateness_seconds": _seconds("From the fire time to the claim, of first attempts."),
    "start_lateness_seconds": _seconds("From the fire time to the handler, of first attempts."),
    "run_seconds": _seconds("How long handlers took."),
    "append_seconds": _seconds("How long an append to the log took, by writer."),
    "append_decisions": Instrument("histogram", "Decisions in an append.", "1", SIZES),
    "publish_seconds": _seconds("How long a round of publishing took."),
    "publish_messages": Instrument("histogram", "Messages in a round.", "1", SIZES),
}


class Measures(Protocol):
    """Takes measurements; from any thread, and never fails. Names are those of ``INSTRUMENTS``."""

    def count(self, name: str, number: int = 1, /, **labels: str) -> None: ...

    def observe(self, name: str, value: float, /, **labels: str) -> None: ...


class NoMeasures:
    """Nobody listens."""

    def count(self, name: str, number: int = 1, /, **labels: str) -> None: ...

    def observe(self, name: str, value: float, /, **labels: str) -> None: ...


UNMEASURED: Final = NoMeasures()


class Several:
    """One measurement for several who listen."""

    def __init__(self, listeners: Sequence[Measures]) -> None:
        self._listeners = tuple(listeners)

    def count(self, name: str, number: int = 1, /, **labels: str) -> None:
        for one in self._listeners:
            one.count(name, number, **labels)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        for one in self._listeners:
            one.observe(name, value, **labels)


class _Distribution:
    __slots__ = ("counts", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.sum = 0.0


MOST_SERIES = 2_000
"""Label sets of one instrument that are kept apart; more are counted under the label ``other``."""


class Meter:
    """Keeps what was measured in memory, to be read as Prometheus' text."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[str, dict[Labels, int]] = {}
        self._distributions: dict[str, dict[Labels, _Distribution]] = {}

    def count(self, name: str, number: int = 1, /, **labels: str) -> None:
        with self._lock:
            series = self._counts.setdefault(name, {})
            key = _bounded(labels, series)
            series[key] = series.get(key, 0) + number

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        buckets = INSTRUMENTS[name].buckets
        with self._lock:
            series = self._distributions.setdefault(name, {})
            key = _bounded(labels, series)
            found = series.get(key)
            if found is None:
                found = series[key] = _Distribution(len(buckets))
            found.counts[bisect_left(buckets, value)] += 1
            found.sum += value

    def text(self) -> str:
        """All of it as Prometheus' text; instruments without a measurement too, so that a query
        finds them from the first scrape on."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, instrument in INSTRUMENTS.items():
            yield f"# HELP horolog_{name} {instrument.help}"
            yield f"# TYPE horolog_{name} {instrument.kind}"
            for labels, value in sorted(self._counts.get(name, {}).items()):
                yield f"horolog_{name}{labels_text(labels)} {value}"
            for labels, found in sorted(self._distributions.get(name, {}).items()):
                yield from _histogram(name, instrument.buckets, labels, found)


def _bounded(labels: Mapping[str, str], series: Mapping[Labels, object]) -> Labels:
    key = tuple(sorted(labels.items()))
    if key in series or len(series) < MOST_SERIES:
        return key
    return tuple((name, "other") for name in sorted(labels))


def _histogram(
    name: str, buckets: Sequence[float], labels: Labels, found: _Distribution
) -> Iterator[str]:
    upto = 0
    for bound, count in zip([*buckets, float("inf")], found.counts, strict=True):
        upto += count
        edge = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield f"horolog_{name}_bucket{labels_text((*labels, ('le', edge)))} {upto}"
    yield f"horolog_{name}_sum{labels_text(labels)} {found.sum!r}"
    yield f"horolog_{name}_count{labels_text(labels)} {upto}"


def labels_text(labels: Labels) -> str:
    """Labels as Prometheus writes them, with what would end a label escaped."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
