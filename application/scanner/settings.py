"""What can be set about a scanner, and what it costs to set it shorter or longer."""

from difflib import get_close_matches
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from horolog.domain.errors import InvalidSetting

RENEWALS_PER_LEASE = 3
"""A lease is renewed this often before it ends, so two renewals in a row may fail."""

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]


class ScannerSettings(BaseModel):
    """Read once, at the start. Units are last in the names: ``_s`` is seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lease_s: Seconds = 10.0
    """How long a leader is believed in without a sign of life. Shorter: faster takeover, and
    elections set off by ordinary pauses. Longer: nothing in its partitions fires until it ends."""

    settle_s: Seconds = 0.5
    """How often an instance that leads less than its share looks for partitions. Shorter: evened
    out sooner after a start, with more queries until then."""

    horizon_s: Seconds = 60.0
    """How far ahead the time wheel is loaded. Shorter: less memory. Longer: a burst at one instant
    is read in advance over a longer time. Correct at any length."""

    sweep_s: Seconds = 2.0
    """How often the index is read for what no notification told. Shorter: less late where one was
    lost, more queries while idle. Longer: the reverse."""

    look_interval_s: Seconds = 2.5
    """How often ended claim windows and attempt leases are looked for, and the state of the queue.
    Shorter: lost work is noticed sooner. Longer: fewer queries."""

    inbox_interval_s: Seconds = 5.0
    """How often the inbox is looked at for what no notification told. Shorter: a command given in
    a client's transaction is carried out sooner where its news was lost, more queries while idle.
    Longer: the reverse."""

    tick_s: Annotated[float, Field(ge=0.0001, le=1)] = 0.001
    """The width of the wheel's finest slot. Finer or coarser changes its cost, not its answers."""

    wheel_capacity: Count = 200_000
    """The most entries ahead of their time in memory (about 300 bytes each); half as many may be
    due and wait for their queue. Fewer: what lies further ahead, or further back in a queue, is
    read again when its time comes. More: memory."""

    read_batch: Count = 5_000
    """The most index rows in one query, over all partitions."""

    claim_batch: Annotated[int, Field(ge=1, le=10_000)] = 1_000
    """The most due entries in one claim transaction. Smaller: the log lock is held for less time.
    Larger: more claims per second."""

    claim_window_s: Seconds = 30.0
    """How long a claim may stay without an attempt before its leader looks whether the queue still
    holds the message. Shorter: what the queue lost is out again sooner. Longer: fewer looks while
    workers are away. Longer than JetStream's duplicate window."""

    max_window_s: Seconds = 300.0
    """The windows of a message that stays in the queue double up to this."""

    max_unpublished: Count = 20_000
    """Claimed runs that are not known to be in the queue. Claiming stops there: fewer, and less is
    claimed in vain while NATS is away; more, and the first minute after it is back is busier."""

    max_unpublished_bytes: Count = 8_000_000
    """The same bound for the size of those runs; one may exceed it."""

    stream_replicas: Annotated[int, Field(ge=1, le=5)] | None = None
    """Copies of the ready queue in a NATS cluster: 3 outlive the loss of a node. Fewer: the loss of
    the one node costs a minute of lateness, until the log has filled the queue again. None: one,
    or what an operator made of it. The same for all scanners."""

    ahead_s: Annotated[float, Field(gt=0, le=60)] = 0.8
    """How much work may lie in a ready queue, in seconds of its workers' present pace. Shorter: who
    comes next waits behind less of a flood. Longer: workers are never short of work between two
    looks at the queue."""

    ahead_first: Count = 100
    """How many runs a queue is given before its workers' pace is known. Fewer: less lies in it
    while no worker takes anything. More: a burst after a pause is given at once."""

    flood_runs: Count = 100
    """More runs than this waiting for one queue travel several in a message. Fewer: more
    throughput. More: workers share a burst more finely."""

    publish_timeout_s: Seconds = 5.0
    """A message that is not confirmed after this is published again, under the same id."""

    answer_s: Annotated[float, Field(ge=0.5, le=3_600)] = 15.0
    """How long Postgres may leave a statement without an answer, and NATS be silent, before the
    connection is taken for dead and made anew. Shorter: a network that swallows everything is
    noticed sooner. Longer than any statement takes in the worst hour."""

    max_backoff_s: Seconds = 2.0
    """The longest pause after the queue or the store was away, or the queue full."""

    mark_interval_s: Seconds = 0.5
    """How often the publishing position is written while there is something new. Shorter: a
    successor repeats less. Longer: fewer commits."""

    watch_interval_s: Seconds = 5.0
    """How often missed deadlines are looked for. Shorter: they are told sooner. Longer: fewer
    queries."""

    alert_interval_s: Seconds = 5.0
    """How often alerts are looked for. Shorter: they are told sooner. Longer: fewer queries."""

    alert_timeout_s: Annotated[float, Field(gt=0, le=300)] = 10.0
    """How long a command, a webhook or NATS may take to take a notice. Longer: slow ones are borne
    with, and hold up the next look for as long."""

    alert_commands: bool = True
    """Whether this scanner runs the commands that rules of alerts name. Whoever may write to the
    database names them: ``false`` where that is not to be trusted with this machine."""

    drain_s: Seconds = 5.0
    """How long a graceful stop publishes what it has claimed before it leaves it to a successor."""

    def __init__(self, **values: object) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"]) or "scanner settings"
            if first["type"] == "extra_forbidden":
                known = list(type(self).model_fields)
                near = get_close_matches(field, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
                raise InvalidSetting(f"{field}: a scanner has no such setting; {hint}") from error
            raise InvalidSetting(f"{field}={first['input']!r}: {first['msg']}") from error

    @property
    def renew_s(self) -> float:
        """How often leases are renewed."""
        return self.lease_s / RENEWALS_PER_LEASE

    @property
    def due_capacity(self) -> int:
        """How much may be due and wait in memory, beside the wheel; at times twice as much."""
        return max(1, self.wheel_capacity // 2)

    @property
    def near_s(self) -> float:
        """What is due this soon is read with every sweep, so that the next one comes in time."""
        return 2 * self.sweep_s

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.renew_s < 2 * self.tick_s:
            raise ValueError(f"lease_s={self.lease_s} is too short to be renewed in time")
        if self.horizon_s < self.near_s:
            raise ValueError(
                f"horizon_s={self.horizon_s} has to be at least two sweeps ({self.near_s} s)"
            )
        if self.max_window_s < self.claim_window_s:
            raise ValueError(
                f"max_window_s={self.max_window_s} is shorter than claim_window_s"
                f"={self.claim_window_s}"
            )
        if self.claim_window_s <= self.look_interval_s:
            raise ValueError(
                f"claim_window_s={self.claim_window_s} has to be longer than look_interval_s"
                f"={self.look_interval_s}"
            )
        return self
