"""A job as a client states it, before anything is checked."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypedDict

from horolog.domain.definition import CatchUp, OnUnknown, Overlap
from horolog.domain.retry import Retry
from horolog.domain.schedule import Schedule


class Policies(TypedDict, total=False):
    """What of a job ``update`` may change beside its payload; see :class:`JobSpec`."""

    queue: str
    priority: int
    retry: Retry
    timeout: float | None
    overlap: Overlap
    overlap_max: int
    catch_up: CatchUp
    catch_up_window: float
    catch_up_rate: float
    concurrency_limit: int | None
    rate_limit: float | None
    on_unknown: OnUnknown
    start_within: float | None
    finish_within: float | None
    expect_success_by: float | None
    owner: str | None
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What ``register`` takes, as a value: for ``register_many``.

    ``name`` is the handler's. ``payload`` holds the handler's arguments: JSON values and ``Ref``.
    ``key`` makes the registration repeatable: the same key is the same job. ``queue`` says which
    workers run it, ``priority`` (-100 to 100) which of several due runs goes first. ``timeout`` and
    ``catch_up_window`` are seconds.

    ``overlap`` is what happens to a fire time while an earlier run is unfinished: it runs too
    ("allow"), it is dropped ("skip"), it waits ("buffer_one", or "buffer_all", up to
    ``overlap_max``), or the earlier run is cancelled and it runs next ("cancel_other").
    ``catch_up`` says which of the fire times that an outage missed still run ("latest", "earliest",
    "all", "skip"), if they are at most ``catch_up_window`` late, and ``catch_up_rate`` how many of
    them a second. Jobs that share a ``concurrency_key`` are kept in one partition; at most
    ``concurrency_limit`` of them run at once and at most ``rate_limit`` of them begin a second,
    whatever the number of scanners and workers (without a key: of the job's own runs).
    ``on_unknown`` is what follows when a worker died in
    a run and nobody, not even the handler's ``reconcile``, can say whether it took effect: it runs
    again ("retry"), or a person decides ("dead_letter"). ``start_within`` and ``finish_within`` are
    deadlines, in seconds after the fire time, and ``expect_success_by`` is how long the job may be
    without any success: the log says it once (``deadline.missed``) for each run, or each such time,
    that misses one. ``owner`` is who looks at the dead letters. ``subject`` is whose data the job
    carries, a name of yours for a person ("customer-42"): its payload, results and errors are
    encrypted with a key of that subject, and ``forget`` erases them (docs/privacy.md). ``replace``
    changes the job that has the key where it differs, instead of refusing.
    """

    name: str
    _: KW_ONLY
    schedule: Schedule
    payload: Mapping[str, Any] | None = None
    key: str | None = None
    queue: str = "default"
    priority: int = 0
    retry: Retry = Retry()  # noqa: RUF009 - frozen
    timeout: float | None = None
    overlap: Overlap = "allow"
    overlap_max: int = 100
    catch_up: CatchUp = "latest"
    catch_up_window: float = 86_400.0
    catch_up_rate: float = 50.0
    concurrency_key: str | None = None
    concurrency_limit: int | None = None
    rate_limit: float | None = None
    on_unknown: OnUnknown = "retry"
    start_within: float | None = None
    finish_within: float | None = None
    expect_success_by: float | None = None
    owner: str | None = None
    subject: str | None = None
    labels: Mapping[str, str] | None = None
    reason: str | None = None
    replace: bool = False
