"""A worker that runs the commands of an imported crontab.

    crontab -l | horolog import crontab - --zone Europe/Berlin -o jobs.json
    horolog job apply jobs.json
    horolog worker crontab_worker:worker

The output is the run's result, where cron would have mailed it. A command that fails is a dead
letter with the end of its output, where cron would have forgotten it.
"""

import os
import subprocess

from horolog import Permanent, Run, Worker

worker = Worker()
SHOWN = 4000


@worker.handles("crontab.run")
def command(
    run: Run,
    command: str,
    stdin: str = "",
    user: str = "",
    environment: dict[str, str] | None = None,
) -> dict[str, object]:
    """Runs it by the shell that the crontab names; ``user`` is who it was for, see the document."""
    stated = environment or {}
    done = subprocess.run(
        [stated.get("SHELL", "/bin/sh"), "-c", command],
        input=stdin,
        env=os.environ | stated | {"HOROLOG_KEY": run.key},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise Permanent(f"exit status {done.returncode}: {done.stdout[-SHOWN:]}")
    return {"output": done.stdout[-SHOWN:]}
