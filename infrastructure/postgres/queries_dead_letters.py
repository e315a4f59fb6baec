"""Listing dead letters."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from horolog.application.answers.dead_letter import DeadLetter
from horolog.infrastructure.postgres.database import Database

# dead_letters_owner where an owner is given, else the primary key; there are few of them, or the
# alarm about their depth has gone off long ago.
_DEAD_LETTERS = """
    SELECT d.id, d.job_id, d.name, d.owner, d.cause, d.kind, d.error, d.attempt, d.fire_time,
           d.since
    FROM :schema.dead_letters d WHERE d.id > %(after)s {conditions}
    ORDER BY d.id LIMIT %(limit)s
"""
_NIL = UUID(int=0)


class PostgresDeadLetterList:
    """As :class:`ListsDeadLetters` and :class:`FindsDeadLetters` promise."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def dead_letters(
        self, *, owner: str | None, name: str | None, after: UUID | None, limit: int
    ) -> list[DeadLetter]:
        conditions = ""
        params: dict[str, Any] = {"after": after or _NIL, "limit": limit}
        if owner is not None:
            conditions += " AND d.owner = %(owner)s"
            params["owner"] = owner
        if name is not None:
            conditions += " AND d.name = %(name)s"
            params["name"] = name
        statement = self._database.sql(_DEAD_LETTERS.format(conditions=conditions))
        return [DeadLetter(*row) for row in self._database.query(statement, params)]

    def dead(
        self, *, owner: str | None, name: str | None, after: UUID | None, limit: int
    ) -> Sequence[UUID]:
        return [
            letter.id
            for letter in self.dead_letters(owner=owner, name=name, after=after, limit=limit)
        ]
