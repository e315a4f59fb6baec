"""Every process with a login of its own that may do no more than its kind needs."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.acceptance.conftest import Answer, Horolog, eventually

from horolog import Once, Retry, Scheduler

WORKER = """
from horolog import Every, Retry, Run, Worker
worker = Worker()

@worker.handles("pay")
async def pay(run: Run, amount: int) -> dict:
    if run.attempt == 1:
        raise ConnectionError("the bank does not answer")
    return {"charged": amount}

@worker.handles("book", transactional=True)
def book(run: Run) -> None:
    run.connection.execute("SELECT 1")

@worker.handles("refuse")
def refuse(run: Run) -> None:
    raise ValueError("no")
"""


def soon() -> datetime:
    return datetime.now(UTC)


KINDS = ("client", "scanner", "worker", "auditor")


class Logins:
    """A login for each kind of a namespace; ``url`` of one."""

    def __init__(self, horolog: Horolog) -> None:
        self.horolog = horolog
        self.namespace = horolog.environment["HOROLOG_NAMESPACE"]
        self.owner = horolog.environment["HOROLOG_DATABASE_URL"]

    def name(self, kind: str) -> str:
        return f"{self.namespace}_my_{kind}"

    def url(self, kind: str) -> str:
        return make_conninfo(self.owner, user=self.name(kind))

    def run(self, kind: str, *arguments: str, status: int = 0) -> Answer:
        with self.as_(kind):
            return self.horolog.within(*arguments, status=status)

    def start(self, kind: str, *arguments: str) -> None:
        with self.as_(kind):
            self.horolog.start(*arguments)

    @contextmanager
    def as_(self, kind: str) -> Generator[None]:
        self.horolog.environment["HOROLOG_DATABASE_URL"] = self.url(kind)
        yield
        self.horolog.environment["HOROLOG_DATABASE_URL"] = self.owner

    @contextmanager
    def made(self) -> Generator["Logins"]:
        everybody = [*KINDS, "owner"]
        with psycopg.connect(self.owner, autocommit=True) as owner:
            for kind in everybody:
                owner.execute(
                    sql.SQL("CREATE ROLE {} LOGIN IN ROLE {}").format(
                        sql.Identifier(self.name(kind)),
                        sql.Identifier(f"{self.namespace}_{kind}"),
                    )
                )
            group = sql.Identifier(f"{self.namespace}_owner")
            owner.execute(
                sql.SQL("ALTER ROLE {} SET role = {}").format(
                    sql.Identifier(self.name("owner")), group
                )
            )
            try:
                yield self
            finally:
                self.horolog.stop_all()
                owner.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(group))
                for name in everybody:
                    for role in (self.name(name), f"{self.namespace}_{name}"):
                        owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
                        owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.fixture
def logins(horolog: Horolog) -> Generator[Logins]:
    horolog.within("roles", "--apply")
    with Logins(horolog).made() as logins:
        yield logins


def test_each_process_works_whole_with_its_role_alone(logins: Logins) -> None:
    (logins.horolog.folder / "roles_worker.py").write_text(WORKER)
    logins.start("scanner", "scanner")
    logins.start("worker", "worker", "roles_worker:worker")
    with Scheduler(logins.url("client"), namespace=logins.namespace) as client:
        client.limit_queue("default", limit=3)
        paid = client.register(
            "pay",
            schedule=Once(soon()),
            payload={"amount": 5},
            key="pay",
            retry=Retry(base=0.05, jitter=0),
        )
        with psycopg.connect(logins.url("client")) as transaction:
            client.register("book", schedule=Once(soon()), key="book", connection=transaction)
        client.register("refuse", schedule=Once(soon()), owner="team")
        eventually(lambda: client.occurrences(job_id=paid.id, state="succeeded"))
        eventually(lambda: client.jobs(name="book"))
        eventually(lambda: client.occurrences(job_id=client.job("book").id, state="succeeded"))
        (letter,) = eventually(lambda: client.dead_letters(owner="team"))
        client.discard(letter.id)
        client.set_alert("team", dead_letters=3)
    doctor = logins.run("auditor", "doctor", "--json").json
    assert doctor["healthy"], doctor["findings"]
    for arguments in (
        ("verify",), ("verify", "--chain"), ("log",), ("audit", "stats"), ("audit", "skips"),
            ("job", "list"), ("metrics",),
        ("occurrence", "list"), ("projection", "status"), ("queue", "list"),
        ("inbox", "list"), ("dead-letters", "list"), ("job", "history", "pay"),
    ):  # fmt: skip
        logins.run("auditor", *arguments)
    # Webhooks and commands of alerts may be secrets.
    assert (
        "permission denied for table alert_rules"
        in logins.run("auditor", "alert", "list", status=3).err
    )
    logins.run("client", "alert", "list")
    logins.horolog.stop_all()
    logins.run("owner", "projection", "rebuild", "--reason", "as the owner")
    logins.run("owner", "migrate")
    with logins.as_("auditor"):
        looked = logins.horolog.ask_within("doctor", "--json").json
    assert looked["store"]["lacking_grants"] == []
