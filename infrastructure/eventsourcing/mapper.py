"""Between Horolog's events and what the library stores: explicit topics, JSON, upcasting.

The library's own mapper writes import paths as topics and takes an event apart by its ``__dict__``,
which pydantic's events do not survive. Ours writes what the log holds, byte for byte.
"""

from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import (
    Cipher,
    Compressor,
    JSONTranscoder,
    Mapper,
    MapperDeserialisationError,
    StoredEvent,
    Transcoder,
)

from horolog.domain.errors import UnreadableEvent
from horolog.domain.event import Event, read_event


@dataclass(frozen=True)
class Placed:
    """An event in its place: what the library calls a domain event. The version counts from 1."""

    originator_id: UUID
    originator_version: int
    event: Event


class HorologMapper(Mapper[UUID]):
    """Maps :class:`Placed` events; their classes say how, so a transcoder has nothing to do.

    With a cipher or a compressor the state is no longer JSON: SQL, the read models and Horolog's
    own processes cannot read it. That is for a store of its own (any recorder of the library, or
    ``PostgresLogRecorder(plain=True)``); the recorder of a Horolog log refuses it.
    """

    def __init__(
        self,
        transcoder: Transcoder | None = None,
        compressor: Compressor | None = None,
        cipher: Cipher | None = None,
    ) -> None:
        super().__init__(transcoder or JSONTranscoder(), compressor, cipher)

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        if not isinstance(domain_event, Placed):
            raise TypeError(
                f"{type(domain_event).__name__} is no event of Horolog:"
                " put Placed(originator_id, originator_version, event)"
            )
        state = domain_event.event.to_json()
        if self.compressor:
            state = self.compressor.compress(state)
        if self.cipher:
            state = self.cipher.encrypt(state)
        return StoredEvent(
            originator_id=domain_event.originator_id,
            originator_version=domain_event.originator_version,
            topic=domain_event.event.topic,
            state=state,
        )

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[UUID]:
        """The :class:`Placed` event, in its newest shape whatever release wrote it.

        Raises the library's ``MapperDeserialisationError``, which names the event.
        """
        identity, version = stored_event.originator_id, stored_event.originator_version
        where = f"{identity}:{version}"
        state = stored_event.state
        try:
            if self.cipher:
                state = self.cipher.decrypt(state)
            if self.compressor:
                state = self.compressor.decompress(state)
        except Exception as error:  # a user's cipher raises what it likes
            raise MapperDeserialisationError(
                f"event {where} ({stored_event.topic}) cannot be decrypted or decompressed: {error}"
            ) from error
        try:
            event = read_event(stored_event.topic, state, where=where)
        except UnreadableEvent as error:
            raise MapperDeserialisationError(str(error)) from error
        stream = identity if isinstance(identity, UUID) else UUID(identity)
        return cast("DomainEventProtocol[Any]", Placed(stream, version, event))
