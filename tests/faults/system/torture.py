"""Torture: real processes under load, with faults of every kind at random, for as long as asked.

    make torture SECONDS=600            or: python -m tests.faults.system.torture --seconds 600

Two scanners and two workers run what a client registers without pause. A seed decides which fault
comes next and when: processes are killed, stopped for longer than their leases, told to leave and
replaced, on machines whose clocks are wrong and are stepped; Postgres and NATS are restarted,
crashed and killed, and their disks run full (where root runs it); others take every connection,
lock rows and keep transactions open; the network is cut, stalls and swallows; JetStream's data,
stream and consumer are deleted; messages are repeated and invented. In the end everything is
started again and drains, and the account has to be clean. The seed decides the order of the faults;
what the system was doing in that moment is the machine's own, so a failure is a story to read and
not a film to play again.
"""

import argparse
import logging
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any

import nats.errors
from nats.js import JetStreamContext
from tests.faults.system.account import Account, account
from tests.faults.system.clocks import WrongClocks
from tests.faults.system.disks import SmallDisk, alone_with_mounts, small_disks
from tests.faults.system.load import under_load
from tests.faults.system.network import Networks, State, networks_before
from tests.faults.system.others import Others
from tests.faults.system.processes import Process
from tests.faults.system.stranger import a_stranger_repeats, publish
from tests.faults.system.system import SCANNER, NotInTime, System, system_on

from horolog.domain.errors import QueueUnavailable
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.interface.processes.keeper import temporary_folder

SCANNERS, WORKERS = 2, 2
LONGEST_STOP_S = 3 * SCANNER["lease_s"]
AWAY_STATUS = 3
"""What a process ends with that could not begin, since a service was away: it is started again."""

ANSWER_S = 2.0
"""What a scanner gives up after, behind a network that swallows everything."""

CLOCKS_S = (0, -86_400, -30, 30, 3_600, 400 * 86_400)
"""How wrong clocks are."""

YOUNG_S = 6.0
"""After this a process has begun, even on a machine that is busy."""

Fault = Callable[[], None]


class Torture:
    """One run. ``pause_s`` is the mean time between two faults. Half of the processes live behind
    ``networks``; ``disks`` are those of the servers, where they may run full."""

    def __init__(
        self,
        system: System,
        seed: int,
        *,
        pause_s: float,
        networks: Networks,
        clocks: WrongClocks,
        disks: Mapping[str, SmallDisk],
    ) -> None:
        self._system = system
        self._networks, self._clocks, self._disks = networks, clocks, disks
        self._others = Others(system.settings.database_url(), system.namespace)
        self._clock_of: dict[int, Mapping[str, str]] = {}
        self._servers = system.servers
        self._rng = random.Random(seed)
        self._pause_s = pause_s
        self._agenda: list[tuple[float, int, Fault]] = []
        self._number = count()
        self.faults: Counter[str] = Counter()
        self.complaints: list[str] = []
        self._weighted: list[tuple[int, str, Fault]] = [
            (6, "scanner killed", lambda: self._kill("scanner")),
            (6, "worker killed", lambda: self._kill("worker")),
            (5, "scanner stopped past its lease", lambda: self._stop("scanner")),
            (5, "worker stopped past its lease", lambda: self._stop("worker")),
            (2, "scanner told to leave", lambda: self._tell_to_stop("scanner")),
            (2, "worker told to leave", lambda: self._tell_to_stop("worker")),
            (2, "Postgres restarted", lambda: self._restart_postgres("fast")),
            (2, "Postgres crashed", lambda: self._restart_postgres("immediate")),
            (2, "Postgres killed", lambda: self._restart_postgres("killed")),
            (2, "NATS restarted", lambda: self._restart_nats(self._servers.stop_nats)),
            (2, "NATS killed", lambda: self._restart_nats(self._servers.kill_nats)),
            (2, "JetStream's directory deleted", self._wipe),
            (1, "stream deleted", lambda: self._delete(_delete_stream)),
            (1, "consumer deleted", lambda: self._delete(_delete_consumer)),
            (1, "nonsense on the ready subject", self._talk_nonsense),
            (2, "network cut", lambda: self._break_network("cut")),
            (2, "network stalled", lambda: self._break_network("stalled")),
            (1, "network silent", lambda: self._break_network("silent")),
            (2, "every connection taken by others", self._take_connections),
            (1, "long transaction of others", self._read_for_long),
            (2, "rows locked by others", self._lock_rows),
        ]
        self.skipped: list[str] = []
        if clocks.possible:
            self._weighted.append((3, "clock of a process stepped", self._step_clock))
        else:
            self.skipped.append("wrong clocks: there is no C compiler here")
        if disks:
            self._weighted.append((2, "disk full for Postgres", self._fill_postgres))
            self._weighted.append((2, "disk full for NATS", self._fill_nats))
        else:
            self.skipped.append("full disks: only root may mount one that is small")

    def run(self, seconds: float, say: Callable[[str], None]) -> None:
        """Brings faults for so long; returns when all processes are at work again."""
        for role, number in (("scanner", SCANNERS), ("worker", WORKERS)):
            for _ in range(number):
                self._start(role)
        self._system.until_ready(*self._living())
        end, told = time.monotonic() + seconds, time.monotonic()
        self._next_fault()
        while time.monotonic() < end:
            self._do_what_is_due()
            self._replace_the_dead()
            if time.monotonic() - told >= 10:
                told = time.monotonic()
                say(f"{end - told:4.0f} s left, {sum(self.faults.values())} faults")
            time.sleep(0.02)
        self._agenda.clear()
        self._others.leave()
        self._networks.become("open", "both")
        if self._disks:
            self._make_room("postgres")
            self._make_room("nats")
        self._servers.ensure()
        for process in self._living():
            process.go_on()
        for role, number in (("scanner", SCANNERS), ("worker", WORKERS)):
            for _ in range(number - len(self._living(role))):
                self._start(role)

    def check_processes(self) -> None:
        """Notes whoever has ended without having been told to, or ended badly."""
        self._replace_the_dead()
        for process in self._system.processes:
            if process.status not in (None, 0, -signal.SIGKILL, AWAY_STATUS):
                self.complaints.append(
                    f"a {process.role} left with {process.status}: {process.last_words()}"
                )
            self.complaints += [f"a {process.role} said: {line}" for line in process.errors()]

    # The agenda of faults and of what follows from them.

    def _next_fault(self) -> None:
        weights = [weight for weight, _, _ in self._weighted]
        (_, name, fault) = self._rng.choices(self._weighted, weights)[0]

        def strike() -> None:
            self.faults[name] += 1
            fault()
            self._next_fault()

        self._after(self._rng.expovariate(1 / self._pause_s), strike)

    def _after(self, seconds: float, act: Fault) -> None:
        heappush(self._agenda, (time.monotonic() + seconds, next(self._number), act))

    def _do_what_is_due(self) -> None:
        while self._agenda and self._agenda[0][0] <= time.monotonic():
            heappop(self._agenda)[2]()

    # Processes.

    def _living(self, role: str | None = None) -> list[Process]:
        return [
            process
            for process in self._system.processes
            if process.role == (role or process.role)
            and process.status is None
            and not process.ended_by_us
        ]

    def _start(self, role: str) -> None:
        place = self._networks.place if self._rng.random() < 0.5 else {}
        clock: Mapping[str, str] = {}
        if self._clocks.possible:
            clock = self._clocks.place(self._rng.choice(CLOCKS_S))
        if role == "scanner":
            process = self._system.start_scanner_at({**place, **clock}, answer_s=ANSWER_S)
        else:
            process = self._system.start_worker_at({**place, **clock})
        self._clock_of[process.pid] = clock

    def _replace_the_dead(self) -> None:
        """Starts again what ended by itself, as a supervisor does; it may only have done so because
        a service was away when it began."""
        for process in self._system.processes:
            if process.status is None or process.ended_by_us:
                continue
            process.ended_by_us = True
            if process.status == AWAY_STATUS and process.age_s < 30:
                self.faults["started while a service was away"] += 1
            else:
                self.complaints.append(f"a {process.role} ended by itself: {process.last_words()}")
            self._after(0.5, lambda role=process.role: self._start(role))

    def _one(self, role: str) -> Process | None:
        running = [process for process in self._living(role) if not process.stopped]
        return self._rng.choice(running) if running else None

    def _kill(self, role: str) -> None:
        if process := self._one(role):
            process.kill()
            self._after(self._rng.uniform(0, 1.5), lambda: self._start(role))

    def _stop(self, role: str) -> None:
        if process := self._one(role):
            process.stop()
            self._after(self._rng.uniform(0.3, LONGEST_STOP_S), process.go_on)

    def _tell_to_stop(self, role: str) -> None:
        process = self._one(role)
        if process is not None and process.age_s > YOUNG_S:  # before, SIGTERM simply ends it
            process.tell_to_stop()
            self._start(role)

    # Servers.

    def _restart_postgres(self, how: str) -> None:
        if how == "killed":
            self._servers.kill_postgres()
        else:
            self._servers.stop_postgres("fast" if how == "fast" else "immediate")
        self._after(self._rng.choice([0.0, 0.0, 0.5, 1.5]), self._servers.start_postgres)

    def _restart_nats(self, end: Fault) -> None:
        end()
        self._after(self._rng.choice([0.0, 0.0, 0.5, 1.5]), self._servers.start_nats)

    def _wipe(self) -> None:
        self._servers.kill_nats()
        self._servers.wipe_jetstream()
        self._after(self._rng.choice([0.0, 0.5]), self._servers.start_nats)

    def _delete(self, delete: Callable[[JetStreamContext, str], Any]) -> None:
        with suppress(*_FOILED):
            self._system.on_nats(lambda jetstream: delete(jetstream, self._system.stream))

    def _talk_nonsense(self) -> None:
        with suppress(*_FOILED):
            publish(self._system, [b"nonsense", b'{"format":1,"runs":[]}'])

    # Disks, networks, clocks, and other people.

    def _fill_postgres(self) -> None:
        """It may go on without writing, or panic and not come up again before there is room."""
        self._disks["postgres"].fill()
        self._after(self._rng.uniform(0.3, 4.0), lambda: self._make_room("postgres"))

    def _fill_nats(self) -> None:
        """JetStream switches itself off, and stays so until somebody starts it again."""
        self._disks["nats"].fill()
        self._after(self._rng.uniform(0.3, 4.0), lambda: self._make_room("nats"))

    def _make_room(self, server: str) -> None:
        self._disks[server].free()
        if server == "postgres":
            self._servers.start_postgres()
        else:
            self._servers.stop_nats()
            self._servers.start_nats()

    def _break_network(self, state: State) -> None:
        server = self._rng.choice(["both", "postgres", "nats"])
        self._networks.become(state, server)
        seconds = self._rng.choice([0.1, 1.0, 3.0]) * self._rng.uniform(0.5, 1.5)
        self._after(seconds, lambda: self._networks.become("open", server))

    def _step_clock(self) -> None:
        if process := self._one(self._rng.choice(["scanner", "worker"])):
            self._clocks.step(self._clock_of[process.pid], self._rng.choice(CLOCKS_S))

    def _take_connections(self) -> None:
        self._others.take_all_connections()
        self._after(self._rng.uniform(0.2, 3.0), self._others.leave)

    def _read_for_long(self) -> None:
        self._others.read_for_long()
        self._after(self._rng.uniform(3.0, 20.0), self._others.leave)

    def _lock_rows(self) -> None:
        self._others.lock_rows(self._rng.choice([1, 20, 1000]))
        self._after(self._rng.uniform(0.2, 4.0), self._others.leave)


_FOILED = (QueueUnavailable, nats.errors.Error, OSError, TimeoutError)
"""NATS is away, or another fault was quicker."""


async def _delete_stream(jetstream: JetStreamContext, stream: str) -> None:
    await jetstream.delete_stream(stream)


async def _delete_consumer(jetstream: JetStreamContext, stream: str) -> None:
    await jetstream.delete_consumer(stream, "default")


def torture(
    system: System,
    seed: int,
    *,
    seconds: float,
    per_second: float,
    pause_s: float,
    drain_s: float,
    say: Callable[[str], None],
    disks: Mapping[str, SmallDisk] | None = None,
) -> tuple[Torture, Account]:
    """Faults under load for so long, then the account of it."""
    with networks_before(system.settings) as networks:
        run = Torture(
            system,
            seed,
            pause_s=pause_s,
            networks=networks,
            clocks=WrongClocks(system.folder),
            disks=disks or {},
        )
        return run, _account_of(run, system, seed, seconds, per_second, drain_s, say)


def _account_of(
    run: Torture,
    system: System,
    seed: int,
    seconds: float,
    per_second: float,
    drain_s: float,
    say: Callable[[str], None],
) -> Account:
    with a_stranger_repeats(system, share=0.1, seed=seed) as stranger:
        with under_load(system, per_second, seed):
            run.run(seconds, say)
        run.faults["message repeated by a stranger"] = stranger.repeated
    say("the faults are over; waiting for what is left")
    began = time.monotonic()
    try:
        system.until_done(drain_s)
        say(f"nothing is left after {time.monotonic() - began:.1f} s")
    except NotInTime as error:
        run.complaints.append(str(error))
    run.check_processes()
    found = account(system)
    found.wrong += run.complaints
    return found


def report(run: Torture, found: Account, seed: int) -> str:
    """What was done to it, and what came of it."""
    of_log = found.report
    lines = ["", "faults"]
    lines += [f"  {number:6}  {name}" for name, number in sorted(run.faults.items())]
    lines += [f"       -  {words}" for words in run.skipped]
    lines += ["", "the log"]
    for name in ("events", "jobs", "occurrences", "claims", "attempts", "succeeded", "failed",
                 "lost", "retried", "snoozed", "elections"):  # fmt: skip
        lines.append(f"  {getattr(of_log, name):6}  {name}")
    lines += ["", "refused or set aside"]
    lines += [f"  {number:6}  {name.replace('_', ' ')}" for name, number in found.counters.items()]
    lines += ["", f"occurrences expected: {found.occurrences}", f"lost: {len(found.lost)}"]
    lines += [f"doubled: {len(found.doubled)}", f"violations: {of_log.violation_count}"]
    lines += [f"otherwise wrong: {len(found.wrong)}", *found.problems[:50]]
    return "\n".join([*lines, f"seed: {seed}"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--per-second", type=float, default=40.0, help="occurrences")
    parser.add_argument("--pause", type=float, default=1.5, help="seconds between faults (mean)")
    parser.add_argument("--logs", type=Path, help="where the processes' words are kept")
    arguments = parser.parse_args()
    mounts = alone_with_mounts("tests.faults.system.torture")
    seed: int = random.randrange(1_000_000) if arguments.seed is None else arguments.seed
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"[{time.monotonic() - began:6.1f}] {words}", flush=True)

    say(f"seed {seed}")
    # What a client of ours says of a server that we have stopped ourselves is no news.
    logging.getLogger("nats").setLevel(logging.CRITICAL)
    with temporary_folder() as folder:
        logs: Path = arguments.logs or folder / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        home = folder / "home"
        with ExitStack() as stack:
            disks: Mapping[str, SmallDisk] = {}
            if mounts:
                disks = stack.enter_context(small_disks(home))
            system = stack.enter_context(system_on(EmbeddedServers(home), "torture", logs))
            run, found = torture(
                system,
                seed,
                seconds=arguments.seconds,
                per_second=arguments.per_second,
                pause_s=arguments.pause,
                drain_s=180.0,
                say=say,
                disks=disks,
            )
            EmbeddedServers(home).stop("immediate")
    print(report(run, found, seed))
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
