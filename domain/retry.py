"""When a failed attempt is tried again, and when it is not.

delay(n) = min(cap, base × factor^(n−1)), and up to ``jitter`` of it on top. The delay grows so that
a struggling service is not hammered; the jitter keeps many failures of one instant from returning
together. It is derived from the occurrence's id, so a replay of the log gives the same instant.
"""

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from horolog.domain.errors import InvalidPolicy
from horolog.domain.failure import FailureKind, is_worth_repeating
from horolog.domain.ids import fraction

Seconds = Annotated[float, Field(ge=0, le=366 * 86_400, allow_inf_nan=False)]


class Retry(BaseModel):
    """How often and how patiently an occurrence is tried.

    ``max_attempts`` counts the first try. ``base`` and ``cap`` are seconds, ``jitter`` a fraction
    of the delay (0 to 1). ``max_elapsed`` is for how many seconds after the beginning of its first
    attempt the next one may still begin. Snoozes and shutdowns use up no attempt.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: Annotated[int, Field(ge=1, le=1000)] = 5
    base: Seconds = 1.0
    factor: Annotated[float, Field(ge=1, le=100, allow_inf_nan=False)] = 2.0
    cap: Seconds = 3600.0
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.1
    max_elapsed: Annotated[float, Field(gt=0, le=366 * 86_400, allow_inf_nan=False)] | None = None

    def __init__(
        self,
        *,
        max_attempts: int = 5,
        base: float = 1.0,
        factor: float = 2.0,
        cap: float = 3600.0,
        jitter: float = 0.1,
        max_elapsed: float | None = None,
    ) -> None:
        """Raises ``InvalidPolicy`` for a value outside of what its field may be."""
        try:
            super().__init__(
                max_attempts=max_attempts,
                base=base,
                factor=factor,
                cap=cap,
                jitter=jitter,
                max_elapsed=max_elapsed,
            )
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InvalidPolicy(
                f"retry.{first['loc'][0]}={first['input']!r}: {first['msg']}"
            ) from None

    # Read from JSON, as a part of a definition or of a message, it is validated as any model is. A
    # model with an ``__init__`` of its own would have that called, and what a stranger wrote there
    # (a name that is none of its arguments) would come out as no error of validation.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]

    def delay_s(self, failures: int, identity: UUID) -> float:
        """Seconds to wait after the ``failures``-th failed attempt of this occurrence."""
        assert failures >= 1
        # A float overflows at about 2^1024; the cap is reached long before the exponent gets there.
        exponent = min(failures - 1, 1_000 if self.factor <= 2 else 150)
        delay = min(self.cap, self.base * self.factor**exponent)
        return delay * (1 + self.jitter * fraction(identity, f"retry:{failures}"))

    def next_try(
        self,
        kind: FailureKind,
        failures: int,
        identity: UUID,
        now: datetime,
        after_s: float | None = None,
        since: datetime | None = None,
    ) -> datetime | None:
        """The instant of the next try, or ``None`` where the occurrence goes to the dead letters.

        ``failures`` counts this one. ``after_s`` is what the downstream asked for and replaces the
        computed delay. ``since`` is when the first attempt began, where that is known.
        """
        if failures >= self.max_attempts or not is_worth_repeating(kind):
            return None
        delay = self.delay_s(failures, identity) if after_s is None else after_s
        at = now + timedelta(seconds=delay)
        if self.max_elapsed is not None and since is not None:
            return at if at <= since + timedelta(seconds=self.max_elapsed) else None
        return at
