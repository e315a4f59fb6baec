"""The guides for who runs it: putting it in place, and being on call while a run hangs."""

import psycopg
from psycopg import sql
from tests.acceptance.conftest import eventually
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.granted import a_job, programs
from tests.acceptance.guides.guide import Guide, Says

HANGS = """
from asyncio import sleep

from horolog import Run, Worker

worker = Worker()


@worker.handles("report")
async def report(run: Run) -> None:
    await sleep(3600)
"""


def healthy(desk: Desk) -> bool:
    """Nothing is to be done but with what lies among the dead letters."""
    told = desk.ask("doctor").out
    findings = [line for line in told.splitlines() if line.startswith(("! ", "✗ "))]
    return bool(findings) and all("dead letters of" in finding for finding in findings)


def of_operations(desk: Desk) -> None:
    a_job(desk)
    desk.words |= {"ROLE": f"{desk.namespace}_app", "FILE": "checkpoint.json"}
    for kind in ("client", "scanner", "worker", "auditor", "owner"):
        desk.words[f"horolog_{kind}"] = f"{desk.namespace}_{kind}"
    with psycopg.connect(desk.database_url, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(desk.words["ROLE"])))
    assert desk.ask("verify", "--checkpoint", "checkpoint.json").status == 0
    if desk.processes:
        desk.write("hangs.py", HANGS)
        desk.terminal.start("scanner")
        desk.terminal.start("worker", "hangs:worker")
        eventually(lambda: healthy(desk))


def of_deployment(desk: Desk) -> None:
    (program,) = programs("docs/deployment.md", "python")
    desk.write("jobs.py", program)


DEPLOYMENT = Guide("deployment", of_deployment)

OPERATIONS = Guide(
    "operations", of_operations,
    says={
        "horolog job changes JOB": Says(("the disk is full",)),
        "horolog dead-letters list --owner TEAM": Says(("no such card",)),
        "horolog dead-letters replay --all --owner TEAM --rate 10 --dry-run": Says(("1 ",)),
        "horolog projection verify": Says(("as the log says",)),
        "horolog projection rebuild --reason TICKET": Says(("rebuilt and in use",)),
        "horolog verify --chain --against FILE": Says(("the chain holds",)),
        "horolog occurrence explain ID": Says(("ordered one extra run",)),
    },
)  # fmt: skip
