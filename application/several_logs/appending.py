"""Appending to several logs: each decision goes to its job's, and stands or falls there alone.

A batch is one transaction for each log that it concerns, not one for all. So where a log is lost
between two of them, part of a batch of registrations is written: what has keys may be given again,
as always.
"""

from collections.abc import Sequence
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences, Verdict
from horolog.application.several_logs.finding import C, Logs
from horolog.application.several_logs.place import birth_of, log_of_job
from horolog.domain.errors import KeyConflict


class AppendsToLogs:
    """As :class:`horolog.application.log.AppendsToLog` promises for each log; for commands, whose
    decisions have no fences. The position in the answer is that of no log: 0.

    Raises ``KeyConflict`` where a key was registered in two logs at once (with two concurrency
    keys, which is no definition's change but two jobs): of the two clients at least one hears of
    it.
    """

    def __init__(self, logs: Logs[C]) -> None:
        self._logs = logs

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        assert fences is None, "leaders append to their own log"
        places = [self._place(decision) for decision in decisions]
        # All that are needed answer, before anything is written to one of them.
        concerned = {number: self._logs.at(number) for number in sorted(set(places))}
        verdicts: list[Verdict] = ["conflict"] * len(decisions)
        appended: Appended | None = None
        for number, one in concerned.items():
            at = [index for index, place in enumerate(places) if place == number]
            appended = one.context.log.append([decisions[index] for index in at])
            for index, verdict in zip(at, appended.verdicts, strict=True):
                verdicts[index] = verdict
        assert appended is not None, "a batch has decisions"
        keyed: dict[UUID, int] = {}
        for decision, place, verdict in zip(decisions, places, verdicts, strict=True):
            if birth_of(decision) is not None and verdict == "accepted":
                self._logs.remember(decision.guard.id, place)
                if decision.jobs[0].key is not None:
                    keyed[decision.guard.id] = place
        self._refuse_twins(keyed)
        return Appended(verdicts, 0, appended.recorded_at)

    def _place(self, decision: Decision) -> int:
        born = birth_of(decision)
        if born is not None:
            partitions = self._logs.any().context.partitions
            return log_of_job(*born, partitions, len(self._logs))
        if decision.guard.kind == "job":
            return self._logs.number_of_job(decision.guard.id)
        return self._logs.number_of_occurrence(decision.guard.id)

    def _refuse_twins(self, keyed: dict[UUID, int]) -> None:
        """Looks for the same jobs in the other logs, now that they are in their own."""
        for number, one in enumerate(self._logs.all() if keyed else ()):
            others = [job_id for job_id, place in keyed.items() if place != number]
            for job_id, twin in (one.context.states.jobs(others) if others else {}).items():
                raise KeyConflict(
                    f"key {twin.key!r} was registered twice at once, with two concurrency keys: in"
                    f" log {keyed[job_id]} and in log {number}: cancel job {job_id} in one of them"
                    " (--log N)"
                )
