"""The result of an earlier run, for ``run.last_result``: opened where it is sealed."""

from typing import Any
from uuid import UUID

from horolog.application.privacy.ports import OpensSealed
from horolog.domain.sealed import token_of


def opened_result(keyring: OpensSealed, occurrence_id: UUID, result: Any) -> Any:
    """The result of that occurrence; ``None`` where it is erased, or was sealed for another.

    Raises what opening raises.
    """
    token = token_of(result)
    if token is None:
        return result
    opened = keyring.open(token) if token.place == occurrence_id else None
    return None if opened is None else opened.value
