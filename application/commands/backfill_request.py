"""What a backfill is asked to do: the range, what of it runs again, how, and how fast."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypedDict, get_args

from horolog.application.commands.triggering import check_aware, check_request_id
from horolog.domain.errors import InvalidPolicy, InvalidSchedule

MAX_RATE: Final = 1_000.0

Reprocess = Literal["none", "failed", "all"]
Defined = Literal["then", "current"]


class BackfillOptions(TypedDict, total=False):
    """What may be said beside the range; see :class:`Backfill`."""

    reprocess: Reprocess
    definition: Defined
    reverse: bool
    rate: float | None
    request_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """What is asked for: the fire times from ``start`` to ``end`` (aware, both included).

    ``reprocess`` says what of those that have run before runs again: nothing ("none"), what ended
    without success ("failed"), or all that is over ("all"). ``definition`` says how they run: as
    the job was at each fire time ("then"), or by its present schedule and definition ("current").
    ``reverse`` begins with the newest. ``rate`` is how many begin each second, at most 1,000; all
    at once, if absent. The same ``request_id`` orders the same runs again at most once.
    """

    start: datetime
    end: datetime
    reprocess: Reprocess = "none"
    definition: Defined = "then"
    reverse: bool = False
    rate: float | None = None
    request_id: str | None = None

    def check(self) -> None:
        """Raises ``InvalidSchedule`` for a range and ``InvalidPolicy`` for what cannot be asked."""
        for name, moment in (("start", self.start), ("end", self.end)):
            check_aware(name, moment)
            if not 1970 <= moment.year < 9999:
                raise InvalidSchedule(
                    f"{name}={moment.isoformat()}: a backfill goes from 1970 to 9998"
                )
        if self.end < self.start:
            raise InvalidSchedule(
                f"end={self.end.isoformat()} is before start={self.start.isoformat()}:"
                " give the earlier first"
            )
        for name, given, known in (
            ("reprocess", self.reprocess, get_args(Reprocess)),
            ("definition", self.definition, get_args(Defined)),
        ):
            if given not in known:
                raise InvalidPolicy(f"{name}={given!r}: there are {', '.join(known)}")
        if self.rate is not None and not 0 < self.rate <= MAX_RATE:
            raise InvalidPolicy(f"rate={self.rate!r}: give runs a second, up to {MAX_RATE:g}")
        check_request_id(self.request_id)

    @property
    def spacing_s(self) -> float:
        """Seconds between two runs. Newest first needs an order: a microsecond makes one."""
        if self.rate is not None:
            return 1.0 / self.rate
        return 1e-6 if self.reverse else 0.0
