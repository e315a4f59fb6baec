"""`horolog dev`: one terminal runs everything, a second one uses it, and the data stay."""

import json
import signal
import socket
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from tests.acceptance.conftest import Horolog, Running, eventually

from horolog import Scheduler
from horolog.application.health import Instance
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.health import PostgresHealth


@pytest.fixture
def terminal(clean_environment: dict[str, str], tmp_path: Path) -> Generator[Horolog]:
    """A terminal in a directory of its own, with nothing set."""
    commands = Horolog(clean_environment, tmp_path)
    try:
        yield commands
    finally:
        commands.stop_all()
        EmbeddedServers(tmp_path / ".horolog").stop()


def instances(database: Database) -> list[Instance]:
    return PostgresHealth(database).store_health().instances


def dev(terminal: Horolog, *arguments: str) -> Running:
    running = terminal.start("dev", *arguments)
    running.wait_for_line(lambda line: "Ctrl-C stops" in line)
    return running


def looked_at(address: str) -> str:
    """The page; nothing while it is not there yet."""
    try:
        with urlopen(address, timeout=5) as answer:
            return answer.read().decode()
    except URLError:
        return ""


def at_home(terminal: Horolog) -> Scheduler:
    """The public API on the servers of that directory."""
    return Scheduler(home=str(terminal.folder / ".horolog"))


def test_a_second_terminal_sees_its_job_run_and_a_restart_keeps_it(terminal: Horolog) -> None:
    first = dev(terminal)
    log = terminal.start("log", "--follow", "--json")
    terminal("job", "register", "ping", "--every", "2", "--key", "ping")
    (page,) = (line.split()[-1] for line in first.seen if "the page is at" in line)
    eventually(lambda: "ping" in looked_at(f"{page}jobs"))
    claimed = json.loads(log.wait_for_line(lambda line: "occurrence.claimed" in line))
    done = json.loads(log.wait_for_line(lambda line: "occurrence.succeeded" in line))
    fire_time = datetime.fromisoformat(claimed["data"]["fire_time"])
    assert (datetime.fromisoformat(done["recorded_at"]) - fire_time).total_seconds() < 1.0
    log.stop()
    assert first.stop(signal.SIGINT) == 0
    assert terminal("job", "list", status=3).out == ""

    second = dev(terminal)
    kept = terminal("job", "list", "--json").json
    assert [job["key"] for job in kept] == ["ping"]
    with at_home(terminal) as scheduler:
        position = scheduler.position()
        eventually(lambda: scheduler.log(after=position, topics="occurrence.succeeded.1"))
    doctor = terminal("doctor", "--json").json
    assert doctor["healthy"], doctor["findings"]
    terminal("job", "pause", "ping")
    terminal.verify()
    assert second.stop() == 0


def test_your_own_worker_is_found_in_the_directory(terminal: Horolog) -> None:
    (terminal.folder / "mine.py").write_text(
        "from horolog import Run, Worker\n"
        "worker = Worker()\n"
        "@worker.handles('greet')\n"
        "def greet(run: Run, name: str) -> str:\n"
        "    return f'hello {name}'\n"
    )
    running = dev(terminal, "mine:worker")
    terminal("job", "register", "greet", "--in", "0.1", "--payload", '{"name": "you"}')
    with at_home(terminal) as scheduler:
        found = eventually(lambda: scheduler.occurrences(state="succeeded"))
        assert scheduler.occurrence(found[0].id).result == "hello you"
    terminal.verify()
    assert running.stop() == 0


def test_a_worker_that_cannot_be_had_ends_it_and_says_why(terminal: Horolog) -> None:
    refused = terminal("dev", "no_such_module:worker", status=2)  # as `horolog worker`
    assert "no_such_module" in refused.err
    assert EmbeddedServers(terminal.folder / ".horolog").find() is None


def test_a_kill_leaves_no_scanner_behind_and_the_next_start_goes_on(terminal: Horolog) -> None:
    first = dev(terminal)
    terminal("job", "register", "ping", "--every", "1", "--key", "ping")
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL

    found = EmbeddedServers(terminal.folder / ".horolog").find()
    assert found is not None, "the servers outlive it"
    database = Database(found.database_url, "horolog")
    try:
        eventually(lambda: not any(one.alive for one in instances(database)))
    finally:
        database.close()
    dev(terminal)
    with at_home(terminal) as scheduler:
        position = scheduler.position()
        eventually(lambda: scheduler.log(after=position, topics="occurrence.succeeded.1"))
    terminal("job", "pause", "ping")
    terminal.verify()


def test_the_servers_listen_on_nothing_but_loopback(terminal: Horolog) -> None:
    dev(terminal)
    endpoints = EmbeddedServers(terminal.folder / ".horolog").find()
    assert endpoints is not None
    port = int(endpoints.nats_url.rpartition(":")[2].strip("/"))
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), port)}
    for address in addresses - {"127.0.0.1", "::1", "127.0.1.1"}:
        with socket.socket() as stranger:
            stranger.settimeout(1)
            assert stranger.connect_ex((str(address), port)) != 0
