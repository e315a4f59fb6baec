"""Sealing in memory: what is sealed is kept apart, and thrown away when its subject is forgotten.

Nothing is encrypted, for nothing leaves the process; but as with real keys, a value in an event or
in a row can be read only as long as its subject is not forgotten.
"""

import json
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.privacy.ports import Opened
from horolog.domain.errors import InvalidPayload, SubjectForgotten
from horolog.domain.ids import subject_stream
from horolog.domain.sealed import Token
from horolog.infrastructure.simulated.tables import Sealed, Tables


class SimulatedKeyring:
    """As :class:`horolog.application.privacy.ports.Keyring` promises."""

    has_master_key = True

    def __init__(self, tables: Tables, namespace: str) -> None:
        self._tables = tables
        self._namespace = namespace

    def seal(self, subject: str, place: UUID, value: Any) -> Token:
        rows = self._tables.sealed
        row = rows.get(subject)
        if row is None:
            row = rows[subject] = Sealed(subject_stream(self._namespace, subject))
        if row.values is None:
            raise _forgotten(subject)
        return _seal(row, place, value)

    def open(self, token: Token) -> Opened | None:
        for row in self._tables.sealed.values():
            if row.key == token.key:
                if row.values is None:
                    return None
                value = json.loads(row.values[int(token.data)])
                return Opened(value, partial(_seal, row))
        raise InvalidPayload("a sealed value was sealed elsewhere and cannot be opened here")

    def drop(self, keys: Collection[UUID] | None = None) -> None:  # noqa: ARG002
        return

    def erased(self, keys: Collection[UUID]) -> frozenset[UUID]:
        rows = self._tables.sealed.values()
        return frozenset(row.key for row in rows if row.values is None and row.key in keys)


def forget_subjects(tables: Tables, accepted: Sequence[Decision]) -> None:
    """Throws away what is sealed of the subjects that these decisions forget.

    Raises ``SubjectForgotten`` where one is about a job that can still fire and whose subject was.
    """
    for decision in accepted:
        for subject in decision.subjects:
            row = tables.sealed.get(subject)
            if row is None or row.values is None:
                raise _forgotten(subject)
    for decision in accepted:
        for event, subject in zip(decision.events, decision.forgotten, strict=False):
            row = tables.sealed.setdefault(subject, Sealed(event.stream))
            row.values = None


def _seal(row: Sealed, place: UUID, value: Any) -> Token:
    values = row.values
    if values is None:  # an attempt that outlives its subject: nobody reads this
        return Token(row.key, place, "0")
    values.append(json.dumps(value).encode())
    return Token(row.key, place, str(len(values) - 1))


def _forgotten(subject: str) -> SubjectForgotten:
    return SubjectForgotten(f"subject {subject!r} was forgotten: no job can carry data of it again")
