"""The ids and keys that users hand over: as ``UUID``, as text, or a job by its key."""

from uuid import UUID

from horolog.domain.errors import UnknownJob, UnknownOccurrence

Identifier = UUID | str


def as_uuid(value: Identifier) -> UUID | None:
    """The id behind ``value``, or ``None`` where it is other text."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        return None


def job_uuid(value: Identifier) -> UUID:
    """The id of a job; ``UnknownJob`` where ``value`` cannot be one."""
    identity = as_uuid(value)
    if identity is None:
        raise UnknownJob(f"no job has the id {value!r}: an id is a UUID, as `job.id` has it")
    return identity


def occurrence_uuid(value: Identifier) -> UUID:
    """The id of an occurrence; ``UnknownOccurrence`` where ``value`` cannot be one."""
    identity = as_uuid(value)
    if identity is None:
        raise UnknownOccurrence(
            f"no occurrence has the id {value!r}: an id is a UUID, as `occurrence.id` has it"
        )
    return identity
