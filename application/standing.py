"""How a process stands: whether it can do its work, and if not, why. For probes and gauges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Standing:
    """``troubles`` are what keeps it from its work now; with none of them it is ready. ``gauges``
    are numbers by the name of their metric, without the prefix."""

    troubles: list[str] = field(default_factory=list[str])
    gauges: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def ready(self) -> bool:
        return not self.troubles


def together(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The gauges of several loops as those of one: sums, and of ages the greatest."""
    merged: dict[str, float] = {}
    for gauges in parts:
        for name, value in gauges.items():
            known = merged.get(name, 0.0)
            merged[name] = max(known, value) if name.endswith("_age_seconds") else known + value
    return merged


GAUGES: Mapping[str, str] = {
    "lease_age_seconds": "Since the last renewal of the leases that this scanner holds.",
    "leases": "Partitions that this scanner leads.",
    "wheel_entries": "Entries in the time wheel.",
    "due_entries": "Due and not claimed, as the scanner knows it.",
    "unpublished_runs": "Claimed and not known to be in the ready queue.",
    "running_runs": "Runs whose handlers go on in this worker.",
    "waiting_decisions": "Decisions of this worker that wait for an append.",
    "loop_age_seconds": "Since the event loop answered last.",
    "ready": "Whether the process can do its work.",
}
