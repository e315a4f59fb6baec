"""Commands given within a transaction, in a simulation: there is none, so they are carried out at
once."""

from collections.abc import Callable, Sequence
from uuid import UUID

from pydantic_core import from_json, to_json

from horolog.application.commands.context import Context
from horolog.application.commands.triggering import FindsTriggers
from horolog.application.inbox.carrying_out import carry_out
from horolog.application.inbox.given import read_given
from horolog.application.inbox.giving import Giving, Outcome, Question


def give_at_once(context: Context, requests: FindsTriggers, giving: Giving) -> Outcome:
    """The outcome of the command, which is in the log then. Raises what the command raises."""
    answers: dict[str, Callable[[str], str]] = {
        "inbox_look": lambda asked: looked(context, requests, asked),
        "inbox_put": lambda asked: _carried_out(context, requests, asked),
    }
    question: Question = next(giving)
    try:
        while True:
            question = giving.send(answers[question.function](question.argument))
    except StopIteration as end:
        return end.value


def looked(
    context: Context, requests: FindsTriggers, asked: str, pending: Sequence[object] = ()
) -> str:
    """The answer to ``inbox_look``, where the documents ``pending`` of that job wait."""
    wanted = from_json(asked)
    present = context.states.jobs([UUID(wanted["job_id"])])
    job = next(iter(present.values()), None)
    triggered = None
    if job is not None and wanted["request_id"] is not None:
        identity = requests.triggered(job.id, wanted["request_id"])
        run = None if identity is None else context.states.occurrence(identity)
        if run is not None:
            triggered = {"occurrence": run.id, "fire_time": run.fire_time}
    row = job and (
        job.id,
        job.version,
        job.status,
        job.partition,
        job.definition.model_dump_json(),
        job.key,
        job.next_fire,
        job.fires,
    )
    return to_json(
        {
            "now": context.clock.now(),
            "partitions": context.partitions,
            "job": row,
            "triggered": triggered,
            "pending": list(pending),
        }
    ).decode()


def _carried_out(context: Context, requests: FindsTriggers, asked: str) -> str:
    carry_out(context, requests, read_given(from_json(asked)["document"]))
    return "1"
