"""The payload of a job that has a subject: sealed on its way into a definition.

Sealing the same payload twice gives two cipher texts. So that a registration which is repeated is
recognised as the same, what is there is opened and compared, and kept where it says the same.
"""

from typing import Any
from uuid import UUID

from horolog.application.privacy.ports import Keyring
from horolog.domain.errors import InvalidPolicy
from horolog.domain.sealed import MAX_SUBJECT_LENGTH, envelope, token_of
from horolog.domain.text import is_storable


def sealed_payload(
    keyring: Keyring,
    subject: str,
    job_id: UUID,
    payload: dict[str, Any],
    present: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """``payload`` sealed; ``present``, the job's sealed payload so far, where it says the same.

    Raises ``SubjectForgotten``, ``NoMasterKey``, ``StoreUnavailable``.
    """
    token = None if present is None else token_of(present)
    if token is not None and present is not None:
        opened = keyring.open(token)
        if opened is not None and opened.value == payload:
            return present
    return dict(envelope(keyring.seal(subject, job_id, payload)))


def checked_subject(subject: object) -> str | None:
    """A subject as it may be registered; raises ``InvalidPolicy``."""
    if subject is None:
        return None
    if (
        not isinstance(subject, str)
        or not 0 < len(subject) <= MAX_SUBJECT_LENGTH
        or not is_storable(subject)
    ):
        raise InvalidPolicy(
            f"subject={str(subject)[:80]!r}: a subject is text of 1 to {MAX_SUBJECT_LENGTH}"
            " characters without NUL, such as 'customer-42' (a name of yours for a person, and"
            " nothing that is about the person: it is not encrypted)"
        )
    return subject
