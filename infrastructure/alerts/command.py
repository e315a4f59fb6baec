"""A command that is told of an alert: run without a shell, with the notice as JSON on its input.

Its exit status says whether it took it. What it prints on its standard error goes where the
scanner's goes, never into the log: it may hold anything.
"""

import asyncio
import json
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from horolog.application.alerting.ports import NotDelivered


async def run_command(
    command: Sequence[str], notice: Mapping[str, Any], environment: Mapping[str, str]
) -> None:
    """Runs it to its end. Cancelling kills it, with the processes that it started.

    Raises ``NotDelivered``.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it cannot be called"
        raise NotDelivered(f"it cannot be started: {why}") from error
    try:
        # A command need not read its input: it may have ended before.
        with suppress(BrokenPipeError, ConnectionResetError):
            await process.communicate(json.dumps(notice).encode() + b"\n")
        status = await process.wait()
    finally:
        # Also of one that has ended: what it left running does not outlive it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.returncode is None:
            await process.wait()
    if status != 0:
        ended = f"exit status {status}" if status > 0 else f"signal {-status}"
        raise NotDelivered(f"it ended with {ended}")
