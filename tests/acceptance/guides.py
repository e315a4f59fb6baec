"""The how-to guides, as somebody follows them: every command that one shows is run, in its order,
on a namespace of the guide's own, and answers as the guide says.

A guide takes some things for granted (a job, a file, an id): `prepare` has them, `words` says what
stands for them in the text. The suite runs what runs in its own process; `make walk` also starts
the processes and asks what runs beside them. What nobody runs is in ``NOT_RUN``, with the reason.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.acceptance.conftest import Answer, Horolog, eventually
from tests.acceptance.shown import ROOT, Shown, blocks, shown
from tests.acceptance.test_log_keeping import OLD, make_months
from tests.interface.conftest import Stage

from horolog import Cron, Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.interface.settings import Settings

NOT_RUN = {
    "pip install": "would change what is installed here; make package-check installs the wheel",
    "python -m venv /opt/horolog": "writes to /opt; make package-check installs the wheel",
    "install -m 600": "writes to /etc",
    "systemctl": "needs systemd; tests/deploy holds the units against the program",
    "crontab -r": "would remove somebody's crontab",
    "horolog scanner --set stream_replicas=3": "needs three NATS servers",
    "horolog web --host 0.0.0.0": "every address; tests/interface/web/test_protection.py",
    "horolog import celery-beat postgresql://": "tests/interface/importing/test_celery_beat.py",
    "python manage.py dumpdata": "needs django-celery-beat; the guide's test has such a dump",
    "python manage.py horolog": "tests/examples/test_frameworks.py, on examples/django_shop.py",
    "python examples/": "tests/examples runs them",
    "horolog projection rebuild --skip": "tests/interface/test_projections.py breaks an event",
    "python bench/": "takes minutes to hours, and a quiet machine",
}
"""What is shown and run by nobody here, by how it begins, and why. Beside it: a process that the
prose only names (`horolog dev` has it by itself) is not started."""

PROCESSES = {"scanner", "worker", "web", "dev", "projection run"}
READY = {"web": "Ctrl-C stops", "dev": "Ctrl-C stops"}


@dataclass
class Desk:
    """Where a guide is followed; ``processes`` also starts what goes on and asks what it serves."""

    terminal: Horolog
    processes: bool
    words: dict[str, str] = field(default_factory=dict[str, str])
    received: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    cleaning: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def namespace(self) -> str:
        return self.terminal.environment["HOROLOG_NAMESPACE"]

    @property
    def database_url(self) -> str:
        return self.terminal.environment["HOROLOG_DATABASE_URL"]

    def scheduler(self) -> Scheduler:
        settings = Settings.read(actor="guide", environment=self.terminal.environment)
        return Scheduler(settings=settings)

    def write(self, name: str, text: str) -> None:
        path = self.terminal.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def ask(self, *words: str, typed: str = "") -> Answer:
        """A command in this process, with what somebody types to it."""
        keyboard = io.TextIOWrapper(io.BytesIO(typed.encode()))
        with contextlib.chdir(self.terminal.folder), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", keyboard)
            return self.terminal.ask_within(*words)

    def listener(self) -> str:
        """The address of a server that keeps what it is sent."""
        received = self.received

        class Listener(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(
                    (self.path, self.rfile.read(int(self.headers["Content-Length"] or 0)))
                )
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Says nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.cleaning.callback(server.server_close)
        self.cleaning.callback(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"


@dataclass(frozen=True)
class Says:
    """What an answer has, and how the command ends."""

    words: tuple[str, ...] = ()
    status: int = 0
    typed: str = ""  # what it asks for


def nothing(desk: Desk) -> None:
    """For a guide that takes nothing for granted."""
    del desk


@dataclass(frozen=True)
class Guide:
    """A document; commands are named as it has them."""

    page: str
    prepare: Callable[[Desk], None] = nothing
    says: Mapping[str, Says] = field(default_factory=dict[str, Says])
    before: Mapping[str, Callable[[Desk], None]] = field(
        default_factory=dict[str, Callable[[Desk], None]]
    )
    then: Callable[[Desk], None] = nothing
    starts: tuple[str, ...] = ()  # processes that the prose has and that are started
    whole: bool = True  # the suite takes it too, all but its processes


# Following one


def follow(guide: Guide, desk: Desk) -> None:
    """All of a guide; leaves nothing behind but the namespace."""
    every = shown(f"docs/{guide.page}.md")
    stated = {*guide.says, *guide.before, *guide.starts}
    assert stated <= {one.line for one in every}, "the guide no longer shows them"
    with desk.cleaning:
        desk.cleaning.callback(drop_roles, desk)
        desk.cleaning.callback(desk.terminal.stop_all)
        guide.prepare(desk)
        for one in every:
            if one.line in guide.before:
                guide.before[one.line](desk)
            if not reason(one):
                take(guide, desk, one)
        guide.then(desk)


def reason(one: Shown) -> str | None:
    """Why nobody runs it."""
    return next((why for start, why in NOT_RUN.items() if one.line.startswith(start)), None)


def take(guide: Guide, desk: Desk, one: Shown) -> None:
    line = put_in(desk, one.line)
    says = guide.says.get(one.line, Says())
    goes_on = process_of(one.line)
    if goes_on and one.mentioned and one.line not in guide.starts:
        return
    if goes_on or not one.line.startswith(("horolog ", "export ")):
        if not desk.processes:
            return
        if goes_on:
            start(desk, line, goes_on)
            return
        answer = eventually(lambda: by_shell(desk, line, one.printed, says))
    else:
        answer = within(desk, line, says.typed)
    desk.answers[one.line] = answer
    statuses = {0, 1} if one.line == "horolog doctor" else {says.status}
    assert answer.status in statuses, (line, answer)
    for word in says.words:
        assert put_in(desk, word) in answer.out + answer.err, (line, word, answer)


def put_in(desk: Desk, text: str) -> str:
    for word, meant in desk.words.items():
        text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", lambda _, m=meant: m, text)
    return text


def process_of(line: str) -> str | None:
    """Which process goes on, where the line starts one."""
    words = line.partition("horolog ")[2].split()
    return next((name for name in PROCESSES if words[: len(name.split())] == name.split()), None)


def within(desk: Desk, line: str, typed: str) -> Answer:
    """A command in this process; `> FILE` and `export NAME="$(…)"` as a shell has them."""
    exported = re.fullmatch(r'export (\w+)="\$\(horolog (.*)\)"', line)
    if exported:
        answer = desk.ask(*shlex.split(exported[2]))
        desk.terminal.environment[exported[1]] = answer.out.strip()
        return answer
    command, _, file = line.partition(" > ")
    answer = desk.ask(*shlex.split(command)[1:], typed=typed)
    if file:
        desk.write(file, answer.out)
    return answer


def start(desk: Desk, line: str, process: str) -> None:
    before, _, command = line.partition("horolog ")
    settings = dict(word.split("=", 1) for word in before.split())
    kept = dict(desk.terminal.environment)
    desk.terminal.environment.update(settings)
    running = desk.terminal.start(*shlex.split(command))
    desk.terminal.environment.clear()
    desk.terminal.environment.update(kept)
    if process in READY:
        running.wait_for_line(lambda told: READY[process] in told)


def by_shell(desk: Desk, line: str, printed: str, says: Says) -> Answer | None:
    """Until it answers as the guide says: what it asks was only just started."""
    bin_directory = Path(sys.executable).parent
    path = f"{desk.terminal.folder}/bin:{bin_directory}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", line],
        env=desk.terminal.environment | {"PATH": path},
        cwd=desk.terminal.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 7 and line.startswith("curl"):  # nobody listens yet
        return None
    if printed and line.startswith("curl") and done.stdout.strip() != printed:
        return None
    return Answer(done.returncode, done.stdout, done.stderr)


def drop_roles(desk: Desk) -> None:
    """Roles are the whole server's; those of the guide begin with its namespace."""
    with psycopg.connect(desk.database_url, autocommit=True) as owner:
        mine = owner.execute(
            "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", [f"{desk.namespace}_"]
        ).fetchall()
        for (role,) in mine:
            name = sql.Identifier(role)
            owner.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(name))
            owner.execute(sql.SQL("DROP OWNED BY {}").format(name))
            owner.execute(sql.SQL("DROP ROLE {}").format(name))


# What the guides take for granted


@contextlib.contextmanager
def on_stage(desk: Desk) -> Generator[Stage]:
    """What leaders and workers would append, without any."""
    database = Database(desk.database_url, desk.namespace)
    with contextlib.closing(database), desk.scheduler() as scheduler:
        stage = Stage(database, scheduler)
        yield stage
        stage.leave()


def a_job(desk: Desk) -> None:
    """A nightly one, paused once; a run that is old, one that is dead and one that waits."""
    with on_stage(desk) as stage:
        nightly = stage.scheduler.register(
            "report", schedule=Cron("30 2 * * *", zone="America/New_York"), key="nightly",
            owner="billing",
        )  # fmt: skip
        stage.scheduler.pause(nightly.id, reason="the disk is full")
        stage.scheduler.resume(nightly.id, reason="it is not")
        make_months(desk.terminal, 6)
        old = stage.scheduler.trigger(nightly.id, at=OLD)
        stage.succeed(stage.attempt(stage.claim(UUID(str(old.id)))))
        failing = stage.scheduler.trigger(nightly.id)
        stage.fail(stage.attempt(stage.claim(UUID(str(failing.id)))))
        run = stage.scheduler.trigger(nightly.id)
    now = datetime.now(UTC).isoformat()
    desk.words |= {
        "JOB": "nightly", "ID": str(run.id), "OLD": str(old.id), "TEAM": "billing",
        "DIR": "archive", "DAYS": "30", "T": now, "2027-03-01T08:00:00+01:00": now,
    }  # fmt: skip


def programs(document: str, language: str) -> list[str]:
    return [text for written_in, text in blocks(document) if written_in == language]


def of_time(desk: Desk) -> None:
    a_job(desk)
    (declared,) = programs("docs/time.md", "toml")
    desk.write("jobs.toml", declared)
    desk.words["FILE"] = "jobs.toml"


def after_time(desk: Desk) -> None:
    """A second time there is nothing left to do."""
    assert "bill-ann" in desk.answers["horolog job apply FILE"].out
    again = desk.ask("job", "apply", "jobs.toml")
    assert "0 created, 0 changed, 0 pruned, 1 unchanged" in again.out


def of_the_log(desk: Desk) -> None:
    a_job(desk)
    *_, program = [
        text for language, text in blocks("docs/asking-the-log.md") if language == "python"
    ]
    desk.write("reports.py", program)


def an_old_run(desk: Desk) -> None:
    """From here on the guide speaks of what has left the log."""
    desk.words |= {"ID": desk.words["OLD"], "T": (OLD - timedelta(days=1)).isoformat()}


def after_the_log(desk: Desk) -> None:
    if desk.processes:
        followed = lambda: "failures" in desk.ask("doctor", "--json").out  # noqa: E731
        eventually(followed)


def of_the_page(desk: Desk) -> None:
    port = free_port()
    desk.terminal.environment["HOROLOG_WEB_PORT"] = str(port)
    desk.words["localhost:8480"] = f"127.0.0.1:{port}"


def of_the_api(desk: Desk) -> None:
    """Beside a scanner, without which no occurrence begins."""
    of_the_page(desk)
    if desk.processes:
        desk.terminal.start("scanner")


def accounts(desk: Desk) -> None:
    """The guide's own, with a whole secret and a whole digest."""
    (listed,) = [one for one in shown("docs/web.md") if one.line == "cat accounts"]
    text = listed.printed.replace("Zx0…", "Zx0" + "s" * 29).replace("9f86d0…", "9f86d0" + "0" * 58)
    desk.write("accounts", text + "\n")
    desk.terminal.stop_all()  # the open page has the port
    of_the_page(desk)


def after_the_page(desk: Desk) -> None:
    if desk.processes:
        port = desk.terminal.environment["HOROLOG_WEB_PORT"]
        asked = f"curl -s http://127.0.0.1:{port}/api/v1/jobs -H 'Host: jobs.example.org'"
        refused = eventually(lambda: by_shell(desk, asked, "", Says()))
        assert "urn:horolog:problem:unknown-caller" in refused.out, refused
        secret = "Zx0" + "s" * 29
        let_in = by_shell(desk, f"{asked} -H 'Authorization: Bearer {secret}'", "", Says())
        assert let_in is not None
        assert json.loads(let_in.out)["items"] == []


def of_alerts(desk: Desk) -> None:
    desk.write("page", f'#!/bin/sh\necho "$@" > paged\ncat >> {desk.terminal.folder}/paged\n')
    pager = desk.terminal.folder / "page"
    pager.chmod(0o755)
    desk.words |= {
        "https://hooks.example.com": desk.listener(),
        "/usr/local/bin/page": str(pager),
    }


def after_alerts(desk: Desk) -> None:
    """The notice is what the guide shows."""
    (shape,) = programs("docs/alerts.md", "json")
    ((path, notice),) = desk.received
    assert path == "/T0/key"
    told = json.loads(notice)
    assert told.keys() == json.loads(shape).keys()
    assert (told["state"], told["owner"]) == ("test", "team-billing")


JOBS = """
from horolog import Run, Worker

worker = Worker()


@worker.handles("report")
def report(run: Run) -> str:
    return "written"
"""


def of_observability(desk: Desk) -> None:
    a_job(desk)
    desk.write("jobs.py", JOBS)
    desk.terminal.environment["OTEL_METRIC_EXPORT_INTERVAL"] = "500"
    desk.words |= {
        "9464": str(free_port()), "localhost:9464": "127.0.0.1:9464", "9465": str(free_port()),
        "http://localhost:4318": desk.listener(),
    }  # fmt: skip
    desk.words["localhost:9464"] = f"127.0.0.1:{desk.words['9464']}"


def after_observability(desk: Desk) -> None:
    """Both came by OTLP: metrics, and spans once something ran."""
    if desk.processes:
        with desk.scheduler() as scheduler:
            scheduler.trigger(scheduler.job("nightly").id)
        eventually(lambda: {"/v1/metrics", "/v1/traces"} <= {path for path, _ in desk.received})


def of_deployment(desk: Desk) -> None:
    (program,) = programs("docs/deployment.md", "python")
    desk.write("jobs.py", program)


def of_privileges(desk: Desk) -> None:
    """The guide's names, each with the namespace in front: roles are the whole server's."""
    for kind in ("client", "scanner", "worker", "auditor", "owner"):
        desk.words[f"horolog_{kind}"] = f"{desk.namespace}_{kind}"
    for login in ("shop_web", "runner_1", "deployer"):
        desk.words[login] = f"{desk.namespace}_{login}"


def logins(desk: Desk) -> None:
    """The guide's SQL, and what the logins then may do."""
    (statements,) = [
        text for language, text in blocks("docs/least-privilege.md") if language == "sql"
    ]
    with psycopg.connect(desk.database_url, autocommit=True) as owner:
        owner.execute(put_in(desk, statements).encode())
    everybody = desk.database_url
    register = ("job", "register", "ping", "--every", "86400")
    for login, may in (("shop_web", True), ("runner_1", False)):
        desk.terminal.environment["HOROLOG_DATABASE_URL"] = make_conninfo(
            everybody, user=desk.words[login]
        )
        answer = desk.ask(*register)
        assert (answer.status == 0) == may, (login, answer)
    desk.terminal.environment["HOROLOG_DATABASE_URL"] = everybody


def after_privileges(desk: Desk) -> None:
    """A second time changes nothing; the users are there, and the subject of alerts."""
    assert desk.ask("roles", "--apply").status == 0
    users = (desk.terminal.folder / "horolog-users.conf").read_text()
    for word in (f"{desk.namespace}_scanner", f"{desk.namespace}_worker", "alerts.team"):
        assert word in users


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


def of_privacy(desk: Desk) -> None:
    desk.words["JOB"] = "bills"


def a_subject(desk: Desk) -> None:
    """The guide's own registration, with a key to find it by."""
    (program,) = programs("docs/privacy.md", "python")
    keyed = program.replace("    subject=", '    key="bills",\n    subject=')
    with desk.scheduler() as scheduler:
        exec(compile(keyed, "docs/privacy.md", "exec"), {"scheduler": scheduler, "Cron": Cron})
    assert "4111" not in desk.ask("job", "show", "bills").out


def a_new_master_key(desk: Desk) -> None:
    """It was forgotten for good; and a new key is put before the old one."""
    assert "4111" not in desk.ask("job", "show", "bills", "--reveal").out
    assert "request 2027-113" in desk.ask("log", "--topic", "subject.forgotten").out
    with desk.scheduler() as scheduler:
        scheduler.register(
            "invoices.bill", schedule=Cron("0 2 * * *", zone="UTC"), payload={"card": "4222"},
            subject="customer-43", key="other",
        )  # fmt: skip
    old = desk.terminal.environment["HOROLOG_MASTER_KEY"]
    new = desk.ask("privacy", "new-key").out.strip()
    desk.terminal.environment["HOROLOG_MASTER_KEY"] = f"{new},{old}"


def after_privacy(desk: Desk) -> None:
    """The old one can be taken away."""
    keys = desk.terminal.environment["HOROLOG_MASTER_KEY"].split(",")
    desk.terminal.environment["HOROLOG_MASTER_KEY"] = keys[0]
    assert "4222" in desk.ask("job", "show", "other", "--reveal").out
    assert desk.ask("privacy", "status").status == 0


def of_a_crontab(desk: Desk) -> None:
    desk.write(
        "table", "CRON_TZ=Europe/Berlin\n30 2 * * 1-5 echo backed up\n*/10 * * * * echo looked\n"
    )
    desk.write("bin/crontab", f"#!/bin/sh\nexec cat '{desk.terminal.folder}/table'\n")
    (desk.terminal.folder / "bin" / "crontab").chmod(0o755)
    shutil.copy(ROOT / "examples" / "crontab_worker.py", desk.terminal.folder)


def after_a_crontab(desk: Desk) -> None:
    """What was in the crontab runs here."""
    desk.terminal.start("scanner")
    with desk.scheduler() as scheduler:
        jobs = scheduler.jobs(name="crontab.run")
        assert len(jobs) == 2
        for job in jobs:
            run = scheduler.trigger(job.id)
            eventually(lambda run=run: scheduler.occurrence(run.id).state == "succeeded")
            output = scheduler.occurrence(run.id).result["output"]
            assert f"echo {output.strip()}" == job.payload["command"]


def of_celery(desk: Desk) -> None:
    from tests.interface.importing.test_celery_beat import CRONTAB, TASK

    records = [
        {"model": "django_celery_beat.crontabschedule", "pk": 1, "fields": CRONTAB},
        {"model": "django_celery_beat.periodictask", "pk": 1, "fields": TASK},
    ]
    desk.write("beat.json", json.dumps(records))


def of_apscheduler(desk: Desk) -> None:
    """An application with a scheduler in its code, and the job store of another one."""
    from tests.interface.importing.test_apscheduler import PROGRAM

    desk.write("myapp/__init__.py", "")
    desk.write("myapp/scheduling.py", PROGRAM.replace("scheduling:work", "myapp.scheduling:work"))
    made = by_shell(desk, "python -m myapp.scheduling store sqlite:///jobs.sqlite", "", Says())
    assert made is not None
    assert made.status == 0, made


def after_apscheduler(desk: Desk) -> None:
    exported = json.loads((desk.terminal.folder / "jobs.json").read_text())
    assert {job["key"] for job in exported["jobs"]} == {"nightly", "often", "once"}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


REGISTER_BY_HTTP = next(
    one.line for one in shown("docs/http-api.md") if '"invoices.bill"' in one.line
)

TRACED = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 horolog scanner --otel"

FORGET = 'horolog forget customer-42 --reason "request 2027-113"'

GUIDES = (
    Guide(
        "time", of_time,
        says={
            'horolog schedule preview --cron "30 2 * * *" --zone America/New_York'
            " --after 2027-03-12T00:00:00Z --month": Says(("clock change",)),
            "horolog job apply FILE": Says(("bill-ann",)),
        },
        then=after_time,
    ),
    Guide(
        "asking-the-log", of_the_log,
        says={
            "horolog audit runs": Says(("nightly", "succeeded", "dead")),
            "horolog audit stats": Says(("report",)),
            "horolog audit due T": Says(("report",)),
            "horolog audit runs --since T --archive DIR": Says(("succeeded",)),
            "horolog occurrence explain ID": Says(("one extra run", "nobody has claimed it")),
            "horolog job changes nightly": Says(("paused", "guide", "the disk is full")),
            "horolog log --topic job.paused.1": Says(("guide", "the disk is full")),
            "horolog retention --older-than DAYS --archive DIR": Says(("pruned: 1 occurrences",)),
            "horolog occurrence explain ID --archive DIR": Says(("occurrences-", "succeeded")),
            "horolog occurrence history ID --archive DIR": Says(("occurrences-",)),
        },
        before={"horolog retention --older-than DAYS --archive DIR": an_old_run},
        starts=("horolog projection run reports:Failures",),
        then=after_the_log,
    ),
    Guide(
        "web", of_the_page,
        before={"openssl rand -base64 24": accounts}, then=after_the_page,
    ),
    Guide(
        "http-api", of_the_api,
        says={
            REGISTER_BY_HTTP: Says(('"key":"bill-ann"',)),
            "curl -s localhost:8480/api/v1/jobs/bill-ann/upcoming?n=3": Says(("T02:00:00-0",)),
            'curl -s "localhost:8480/api/v1/log?after=0&topic=occurrence&wait=20"': Says(
                ("occurrence.claimed",)
            ),
        },
    ),
    Guide(
        "alerts", of_alerts,
        says={
            "horolog alert list": Says(("team-billing", "10 dead letters")),
            "horolog alert history": Says(("alert_rule.set",)),
            "horolog metrics": Says(("horolog_alerts",)),
        },
        then=after_alerts,
    ),
    Guide("transactions"),
    Guide(
        "observability", of_observability, then=after_observability,
        before={TRACED: lambda desk: desk.terminal.stop_all()},  # or they would take its runs
    ),
    Guide("deployment", of_deployment),
    Guide(
        "least-privilege", of_privileges,
        before={"horolog roles --nats --alert-subject alerts.team > horolog-users.conf": logins},
        then=after_privileges,
    ),
    Guide(
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
    ),
    Guide("upgrading"),
    Guide(
        "privacy", of_privacy,
        says={
            "horolog job show JOB --reveal": Says(("4111 1111 1111 1111",)),
            FORGET: Says(("for good?",), typed="y"),
        },
        before={
            "horolog job show JOB --reveal": a_subject,
            "horolog privacy rotate": a_new_master_key,
        },
        then=after_privacy,
    ),
    Guide("integrations/django"),
    Guide("integrations/cron", of_a_crontab, then=after_a_crontab, whole=False),
    Guide(
        "integrations/celery-beat", of_celery,
        says={"horolog job apply jobs.json --dry-run": Says(("Bills",))},
    ),
    Guide(
        "integrations/apscheduler", of_apscheduler, then=after_apscheduler, whole=False,
        says={"horolog import apscheduler jobs-there.json -o jobs.json": Says(("refused",), 1)},
    ),
)  # fmt: skip
