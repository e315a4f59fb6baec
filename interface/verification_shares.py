"""The check of a long log in several processes: a share for each, and one report.

What a process costs is its looking at events, not the server's handing them out, which is a tenth
of it; what it remembers is what is unfinished and alive of its share, so all of them together
remember no more than one would. Each is a child of its own, which ends with its parent.
"""

import gc
import os
import signal
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import Synchronized
from typing import Final, cast

from horolog.application.verify import Report, verify
from horolog.application.verify.share import Share, merged
from horolog.application.verify.whole_log import Progress
from horolog.domain.errors import HorologError, StoreUnavailable
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.interface.settings import Settings

WORTH_SHARING: Final = 300_000
"""Positions from which on several processes are quicker: each takes half a second to begin."""
MOST_PROCESSES: Final = 4
"""Each reads the events that all need, and the server reads with them."""
LOOK_S: Final = 0.2


def shares_for(position: int) -> int:
    """How many processes check a log that has come so far."""
    if position < WORTH_SHARING:
        return 1
    return min(MOST_PROCESSES, os.cpu_count() or 1)


def verified_in_shares(
    settings: Settings, shares: int, *, progress: Progress | None = None
) -> Report:
    """As :func:`horolog.application.verify.verify` of the whole log.

    Raises ``StoreUnavailable``, also where a process of its own was killed.
    """
    context = get_context("spawn")
    reached = [context.Value("q", 0) for _ in range(shares)]
    pipes = [context.Pipe(duplex=False) for _ in range(shares)]
    children = [
        context.Process(
            target=_verify_share,
            args=(settings, Share(number, shares), sending, reached[number]),
            daemon=True,
        )
        for number, (_, sending) in enumerate(pipes)
    ]
    try:
        for child, (_, sending) in zip(children, pipes, strict=True):
            child.start()
            sending.close()  # so that the end of the child is the end of the pipe
        return merged(_received([cast("Connection", pipe) for pipe, _ in pipes], reached, progress))
    finally:
        for child in children:
            if child.pid is not None:
                child.terminate()
                child.join()


def _received(
    pipes: list[Connection], reached: list["Synchronized[int]"], progress: Progress | None
) -> list[Report]:
    reports: list[Report] = []
    waited = list(pipes)
    while waited:
        for pipe in wait(waited, LOOK_S):
            assert isinstance(pipe, Connection)
            waited.remove(pipe)
            try:
                found: Report | str = pipe.recv()
            except EOFError:
                raise StoreUnavailable(
                    "a process that checked a share of the log was ended: run the check again"
                ) from None
            if isinstance(found, str):
                raise StoreUnavailable(found)
            reports.append(found)
        if progress is not None:
            progress(min(place.value for place in reached))
    return reports


def _verify_share(
    settings: Settings, share: Share, sending: Connection, reached: "Synchronized[int]"
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    gc.set_threshold(100_000, 50, 100)  # what is remembered has no cycles, and there is much of it
    database = Database(settings.database_url(), settings.namespace)

    def advance(position: int) -> None:
        reached.value = position

    try:
        scan = PostgresLogScan(database, share)
        sending.send(verify(scan, progress=advance, share=share))
    except HorologError as error:
        sending.send(str(error))
    finally:
        database.close()
