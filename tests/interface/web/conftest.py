"""The real application on a migrated namespace, asked as a browser and a program ask it."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from horolog import Scheduler
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.settings import Settings
from horolog.interface.web.accounts import Account
from horolog.interface.web.serving import listening, server_for
from horolog.interface.web.settings import WebSettings

WRITER, READER = "the-secret-of-ann", "the-secret-of-bob"
ACCOUNTS = (
    Account.of("write", "ann", WRITER, where="test"),
    Account.of("read", "bob", READER, where="test"),
)


class Browser(httpx.Client):
    """Asks the server; follows no redirect by itself."""

    def __init__(self, address: str, **headers: str) -> None:
        super().__init__(base_url=address, headers=headers, follow_redirects=False, timeout=30)
        self.address = address
        self.tokens: dict[str, str] = {}


@contextmanager
def served(settings: Settings, web: WebSettings | None = None) -> Generator[Browser]:
    """A real server on a free port of loopback, and somebody who asks it."""
    chosen = (web or WebSettings()).model_copy(update={"port": 0})
    made = listening(chosen)
    server = server_for(settings, chosen)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[made])))
    thread.start()
    try:
        with Browser(f"http://localhost:{made.getsockname()[1]}") as browser:
            yield browser
    finally:
        server.should_exit = True
        thread.join()
        made.close()


@pytest.fixture(scope="session")
def quiet_web(servers: EmbeddedServers) -> Generator[Browser]:
    """One server for all tests that change nothing."""
    found = servers.find()
    assert found is not None
    namespace = f"t_{secrets.token_hex(5)}"
    database = Database(found.database_url, namespace)
    migrate(database)
    database.close()
    settings = Settings.read(
        found.database_url,
        namespace=namespace,
        actor="me",
        nats_url=found.nats_url,
        environment={},
    )
    with served(settings) as browser:
        yield browser


@pytest.fixture
def settings(database: Database, nats_url: str) -> Settings:
    return Settings.read(
        database.url, namespace=database.namespace, actor="me", nats_url=nats_url, environment={}
    )


@pytest.fixture
def web(settings: Settings) -> Generator[Browser]:
    """A server on loopback without accounts."""
    with served(settings) as browser:
        yield browser


def every(web: Browser, **fields: Any) -> dict[str, Any]:
    """A job that the API has registered."""
    body = {"name": "report", "schedule": {"every": 3600}, **fields}
    answer = web.post("/api/v1/jobs", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def job_of(scheduler: Scheduler, name: str) -> Any:
    return scheduler.jobs(name=name)[0]
