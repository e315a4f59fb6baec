"""A scanner that sends itself a signal at a named point of its work, for the n-th time it is there.

python -m tests.faults.system.scanner_program '{settings}' POINT N SIGKILL|SIGSTOP

Points: ``deciding`` (a batch of claims is decided and not yet sent to the log), ``appended`` (the
log has them, the queue has not), ``published`` (the queue has them, the publishing position does
not say so yet).
"""

import asyncio
import json
import signal
import sys
import threading
from typing import Any

from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.interface.processes.scanner import run_scanner
from horolog.interface.processes.signals import stop_on_signals
from horolog.interface.settings import Settings


class Fault:
    """Counts how often the point was reached, in whichever thread, and strikes once."""

    def __init__(self, point: str, at: int, name: str) -> None:
        self._point, self._left, self._signal = point, at, signal.Signals[name]

    def reached(self, point: str, _: int = 1) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                # To this thread: it does not take one more step, as it might while another is hit.
                signal.pthread_kill(threading.get_ident(), self._signal)


async def main() -> None:
    settings = ScannerSettings(**json.loads(sys.argv[1]))
    fault = Fault(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    append = PostgresLog.append

    def deciding(self: PostgresLog, decisions: Any, fences: Any = None) -> Any:
        if any(
            event.event.topic == "occurrence.claimed.1" for d in decisions for event in d.events
        ):
            fault.reached("deciding")
        return append(self, decisions, fences)

    PostgresLog.append = deciding
    place = Settings.read()
    with stop_on_signals() as stop:
        await run_scanner(
            place.database_url(),
            place.nats_url(),
            place.namespace,
            settings,
            stop,
            signals=Signals(fault.reached),
        )


if __name__ == "__main__":
    asyncio.run(main())
