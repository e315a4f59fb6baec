"""What a handler raises to say what it means: give up, try again, come back later."""

from typing import Final

MAX_WAIT_S: Final = 366 * 86_400


class Permanent(Exception):
    """Trying again is of no use: the occurrence goes to the dead letters at once."""


class Retryable(Exception):
    """Trying again may help. ``after`` is in how many seconds (what the downstream asked for);
    without it the job's retry policy says. It uses up an attempt, and ends at ``max_attempts``."""

    def __init__(self, message: str = "", *, after: float | None = None) -> None:
        super().__init__(message)
        if after is not None and not 0 <= after <= MAX_WAIT_S:
            raise ValueError(f"after={after!r}: it takes seconds, from 0 to a year")
        self.after = after


class Snooze(Exception):
    """Not now: come back in ``seconds``. It uses up no attempt, so it may go on for ever."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"snoozed for {seconds} s")
        if not 0 <= seconds <= MAX_WAIT_S:
            raise ValueError(f"Snooze({seconds!r}): it takes seconds, from 0 to a year")
        self.seconds = float(seconds)
