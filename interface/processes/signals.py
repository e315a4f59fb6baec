"""SIGTERM and Ctrl-C as an event that a process's loop waits for."""

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager

ENDED_BY_HAND = 130


@contextmanager
def stop_on_signals() -> Generator[asyncio.Event]:
    """An event of the running loop that the first signal sets; the second ends the process at once.

    What an abrupt end leaves behind is what a crash would: leases run out, and others go on.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        if stop.is_set():
            os._exit(ENDED_BY_HAND)
        stop.set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, told)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
