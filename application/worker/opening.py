"""Opening: the payload of a run whose job has a subject, just before its handler.

What cannot be opened now may be opened later: while Postgres is away, or while this worker lacks
the master key, the run is given back without using up an attempt. What is erased is not run at all.
"""

import logging

from horolog.application.privacy.ports import OpensSealed
from horolog.application.worker.attempt import Attempt
from horolog.application.worker.finishing import Finishing
from horolog.domain.errors import InvalidPayload, InvalidSetting, StoreUnavailable
from horolog.domain.sealed import token_of

log = logging.getLogger("horolog.worker")

NO_KEY_DELAY_S = 30.0
_AWAY_DELAY_S = 2.0


class Opening:
    """Opens payloads for a worker; a blocking call for a thread, and its outcome for the loop."""

    def __init__(self, keyring: OpensSealed, finishing: Finishing) -> None:
        self._keyring = keyring
        self._finishing = finishing

    def open(self, attempt: Attempt) -> bool:
        """Puts the payload into ``attempt.opened``; ``False`` where it is erased.

        Raises ``StoreUnavailable``, ``InvalidSetting`` (of which ``NoMasterKey`` is one) and
        ``InvalidPayload``.
        """
        ready = attempt.ready
        token = token_of(ready.payload)
        if token is None or token.place != ready.job:
            raise InvalidPayload("the payload was sealed for another job, or is no sealed payload")
        opened = self._keyring.open(token)
        if opened is None:
            return False
        if not isinstance(opened.value, dict):
            raise InvalidPayload("what was sealed is no payload")
        attempt.opened = opened
        return True

    def failed(self, attempt: Attempt, error: Exception) -> bool:
        """Gives back a run that cannot be opened now; ``False`` where that is no reason to."""
        if isinstance(error, StoreUnavailable):
            delay_s = _AWAY_DELAY_S
        elif isinstance(error, InvalidSetting):
            delay_s = NO_KEY_DELAY_S
            log.error("the run %s cannot be opened: %s", ready_name(attempt), error)
        else:
            return False
        self._finishing.snoozed(attempt, delay_s, reason=f"its payload cannot be read: {error}")
        return True


def ready_name(attempt: Attempt) -> str:
    """The run, as a log line names it."""
    return f"{attempt.ready.occurrence} ({attempt.ready.name})"
