"""The commands about runs: those that are under way, and those that nobody will retry."""

from horolog.application.answers.dead_letter import DeadLetter
from horolog.application.answers.occurrence import Occurrence
from horolog.application.commands import (
    cancelling,
    dead_letters,
)
from horolog.application.queries.limit import DEFAULT_LIMIT, checked_limit
from horolog.interface.client.present import Present
from horolog.interface.filters import (
    chosen_text,
)
from horolog.interface.identifiers import Identifier, occurrence_uuid


class RunCommands(Present):
    """Cancels runs, and deals with dead letters."""

    def cancel_occurrence(
        self, occurrence_id: Identifier, *, reason: str | None = None
    ) -> Occurrence:
        """Cancels one run; its job goes on. What has not begun does not run, what runs is asked to
        stop: ``run.cancelled`` is set, a coroutine is cancelled.

        A run that stops is "skipped"; one that goes on may still succeed. Cancelling again changes
        nothing. Raises ``UnknownOccurrence``, ``NotAllowed`` for a run that has ended otherwise.
        """
        identity = occurrence_uuid(occurrence_id)
        context = self._connected().of_occurrence(identity).context
        state = cancelling.cancel_occurrence(context, identity, reason=reason)
        return self.read_out(Occurrence.of(state))

    def dead_letters(
        self,
        *,
        owner: str | None = None,
        name: str | None = None,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> list[DeadLetter]:
        """A page of dead letters by fire time; ``after`` is the last id of the page before."""
        page = self._connected().letters.dead_letters(
            owner=chosen_text("owner", owner),
            name=chosen_text("name", name),
            after=None if after is None else occurrence_uuid(after),
            limit=checked_limit(limit),
        )
        return self.read_out(list(page))

    def replay(self, occurrence_id: Identifier, *, reason: str | None = None) -> Occurrence:
        """Tries a dead letter again, at once, under the same key, with a fresh budget of attempts.

        Raises ``UnknownOccurrence``; ``NotAllowed`` where it is no dead letter or its job is
        cancelled.
        """
        identity = occurrence_uuid(occurrence_id)
        context = self._connected().of_occurrence(identity).context
        state = dead_letters.replay(context, identity, reason=reason)
        return self.read_out(Occurrence.of(state))

    def discard(self, occurrence_id: Identifier, *, reason: str | None = None) -> Occurrence:
        """Closes a dead letter for good; discarding it again changes nothing.

        Raises ``UnknownOccurrence``; ``NotAllowed`` where it is no dead letter.
        """
        identity = occurrence_uuid(occurrence_id)
        context = self._connected().of_occurrence(identity).context
        dead_letters.discard(context, identity, reason=reason)
        return self.occurrence(identity)

    def replay_many(
        self,
        *,
        owner: str | None = None,
        name: str | None = None,
        limit: int | None = None,
        rate: float | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> int:
        """Replays the dead letters of an owner or a handler (all, if neither is given).

        Oldest first; with ``rate``, so many begin each second. Returns how many, ``limit`` at most;
        with ``dry_run`` only counts them. Raises ``InvalidPolicy`` for a rate that cannot be.
        """
        return dead_letters.replay_many(
            self._context,
            self._connected().letters,
            owner=chosen_text("owner", owner),
            name=chosen_text("name", name),
            most=limit,
            rate=rate,
            dry_run=dry_run,
            reason=reason,
        )
