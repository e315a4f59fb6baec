"""`make walk`: the walk of a newcomer, from the demo to three machines, as the documents say.

    runs the demo; writes a handler and schedules it; sees it on the page; breaks it, finds it in
    dead letters, mends and replays it; finds out who paused a job last week; follows each how-to
    guide (moves a crontab over, for one); puts it on three machines with a Postgres and a NATS of
    their own, and loses one of them

Programs and commands are read from the documents where those have them; each step fails where the
answer is not what a newcomer was promised. The suite takes the tutorial, last week's pause and the
guides without their processes, CI all of it.
"""

import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import psycopg
from psycopg import sql
from tests.acceptance.conftest import Horolog, Running, eventually
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.every import GUIDES
from tests.acceptance.guides.following import follow
from tests.acceptance.guides.guide import Guide
from tests.acceptance.shown import blocks, commands

from horolog.infrastructure.embedded import EmbeddedServers

ROOT = Path(__file__).parents[2]
WEEK = timedelta(days=7)


# The steps


def demo(terminal: Horolog, seconds: int) -> None:
    """The README's first command."""
    account = terminal("demo", "--seconds", str(seconds), "--json").last_line
    assert account["succeeded"] > 0
    assert account["violations"] == 0, account


def tutorial(terminal: Horolog) -> None:
    """A handler, its job, the page, a dead letter, its replay: as docs/tutorial.md has it."""
    developing: Running | None = None
    programs = 0
    for language, block in blocks("docs/tutorial.md"):
        if language == "python":
            (terminal.folder / "shop.py").write_text(block)
            programs += 1
            if developing is not None:
                developing.stop()
                developing = develop(terminal, "dev", "shop:worker")
            continue
        for command in commands(block):
            if command[0] == "dev":
                developing = develop(terminal, *command)
            elif "--follow" in command:
                following = terminal.start(*command)
                following.wait_for_line(lambda line: "occurrence.succeeded" in line)
                following.stop()
            else:
                answer_of_the_tutorial(terminal, command)
                if developing is not None and command[:2] == ["occurrence", "list"]:
                    on_the_page(developing, "hello")
    assert programs == 2


def develop(terminal: Horolog, *command: str) -> Running:
    running = terminal.start(*command)
    running.wait_for_line(lambda line: "Ctrl-C stops" in line)
    return running


def on_the_page(developing: Running, key: str) -> None:
    """The page that `horolog dev` has told of shows the job."""
    (told,) = [line for line in developing.seen if "the page is at" in line]
    address = told.rpartition(" ")[2]

    def shown() -> bool:
        try:
            with closing(urlopen(f"{address}jobs", timeout=10)) as page:
                return key in page.read().decode()
        except URLError as error:
            if not isinstance(error.reason, ConnectionError):
                raise
            return False  # it is only about to listen

    eventually(shown)


def answer_of_the_tutorial(terminal: Horolog, command: list[str]) -> None:
    """One command; what the text says of its answer is so."""
    if "ID" in command:
        dead = eventually(
            lambda: terminal.within("occurrence", "list", "--job", "bob", "--json").json
        )
        command[command.index("ID")] = dead[0]["id"]
    match command[:2]:
        case ["dead-letters", "list"]:
            letters = eventually(lambda: terminal.within(*command, "--json").json)
            assert letters[0]["owner"] == "team-mail"
        case ["job", "changes"]:
            assert "because 'ann is on holiday'" in terminal.within(*command).out
        case ["occurrence", "explain"]:
            assert "'bob' is not an address" in terminal.within(*command).out
        case ["occurrence", "show"]:
            shown = eventually(
                lambda: (
                    answer
                    if (answer := terminal.within(*command, "--json").json)["state"] == "succeeded"
                    else None
                )
            )
            assert shown["result"] == {"sent": "hello to bob@example.com", "key": shown["id"]}
        case _:
            terminal.within(*command)


def last_week(terminal: Horolog) -> None:
    """Somebody paused a job a week ago; the log says who, when and why.

    The commands of then are given in sessions whose `clock_timestamp()` is a week behind: the
    events get their times where all events get them, from the database's clock.
    """
    database_url = terminal.environment["HOROLOG_DATABASE_URL"]
    past = f"{terminal.environment['HOROLOG_NAMESPACE']}_week_ago"
    schema = sql.Identifier(past)
    behind = sql.SQL(
        "CREATE SCHEMA {0}; CREATE FUNCTION {0}.clock_timestamp() RETURNS timestamptz LANGUAGE sql"
        " VOLATILE AS 'SELECT pg_catalog.clock_timestamp() - make_interval(days => 7)'"
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(behind.format(schema))
        # Functions that state where they look are led there too, for as long as it is last week.
        paths = connection.execute(
            "SELECT p.oid::regprocedure::text, split_part(c, '=', 2)"
            " FROM pg_proc p, unnest(proconfig) c"
            " WHERE pronamespace = %s::regnamespace AND c LIKE 'search_path=%%'",
            [terminal.environment["HOROLOG_NAMESPACE"]],
        ).fetchall()
        for function, path in paths:
            stated = path if "pg_catalog" in path else f"pg_catalog, {path}"
            lead = f"ALTER FUNCTION {function} SET search_path = {past}, {stated}"
            connection.execute(lead.encode())
    mark = "&" if "?" in database_url else "?"
    options = quote(f"-csearch_path={past},pg_catalog")
    then = Horolog(
        terminal.environment | {"HOROLOG_DATABASE_URL": f"{database_url}{mark}options={options}"},
        terminal.folder,
    )
    then.within("job", "register", "echo", "--every", "86400", "--key", "nightly")
    then.within(
        "job", "pause", "nightly", "--actor", "ann@desk", "--reason", "the disk is full"
    )  # fmt: skip
    with psycopg.connect(database_url, autocommit=True) as connection:
        for function, path in paths:
            connection.execute(f"ALTER FUNCTION {function} SET search_path = {path}".encode())
    try:
        told = terminal.within("job", "changes", "nightly", "--json").json
        (pause,) = [change for change in told if change["what"] == "paused"]
        assert (pause["actor"], pause["reason"]) == ("ann@desk", "the disk is full")
        age = datetime.now(UTC) - datetime.fromisoformat(pause["at"])
        assert abs(age - WEEK) < timedelta(minutes=5), age
        # Who does not know which job it was asks the log.
        for command in commands(
            dict(blocks("docs/asking-the-log.md", "Who paused something last week?"))["console"]
        ):
            assert "ann@desk" in terminal.within(*command).out, command
    finally:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(schema))


def guide(followed: Guide, folder: Path, environment: Mapping[str, str]) -> None:
    """A how-to guide with its processes, on a namespace and in a folder of its own."""
    name = re.sub(r"\W", "_", followed.page)
    place = folder / f"guide-{name}"
    place.mkdir()
    terminal = Horolog({**environment, "HOROLOG_NAMESPACE": f"guide_{name}"}, place)
    terminal("migrate")
    follow(followed, Desk(terminal, processes=True))
    assert terminal.within("verify", "--json").json["violations"] == []


def succeeded(terminal: Horolog, job: str, *options: str) -> list[Any]:
    """What ran of a job, newest first."""
    question = ["occurrence", "list", "--job", job, "--state", "succeeded", "--newest-first"]
    return terminal.within(*question, *options, "--json").json


@dataclass(frozen=True)
class Machines:
    """Three directories, each with the settings and programs of one machine, and its processes."""

    terminals: list[Horolog]
    running: list[list[Running]]

    def lose(self, number: int) -> None:
        """All of a machine's processes end at once, without a word."""
        for process in self.running[number]:
            process.process.send_signal(signal.SIGKILL)
        for process in self.running[number]:
            process.process.wait(60)


def three_machines(
    folder: Path, settings: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """docs/deployment.md on three directories; one of the machines is lost, and all goes on."""
    written = dict(blocks("docs/deployment.md", "Three machines, tried on one"))
    migrate, start, register = written["console"].split("\n\n")
    terminals: list[Horolog] = []
    for number in range(3):
        place = folder / f"machine-{number + 1}"
        place.mkdir()
        (place / "jobs.py").write_text(written["python"])
        stated = "".join(f"{name}={value}\n" for name, value in settings.items())
        (place / "horolog.env").write_text(stated)
        own = dict(line.split("=", 1) for line in (place / "horolog.env").read_text().split())
        terminals.append(Horolog({**environment, **own}, place))
    machines = Machines(terminals, [[] for _ in terminals])
    first = terminals[1]
    try:
        for command in commands(migrate):
            first.within(*command)
        for terminal, running in zip(terminals, machines.running, strict=True):
            for command in commands(start):
                running.append(terminal.start(*command))
        keys: list[str] = []
        for command in commands(register):
            first.within(*command)
            keys.append(command[command.index("--key") + 1])
        everywhere = {f"machine-{number}" for number in (1, 2, 3)}
        eventually(lambda: where(first, keys) >= everywhere)

        machines.lose(0)
        lost_at = datetime.now(UTC)
        remaining = everywhere - {"machine-1"}
        for key in keys:
            eventually(
                lambda key=key: where(first, [key], "--since", lost_at.isoformat()) & remaining
            )
        assert where(first, keys, "--since", lost_at.isoformat()) <= remaining
        for key in keys:
            first.within("job", "cancel", key)
        assert first.within("verify", "--json").json["violations"] == []
    finally:
        for terminal in terminals:
            terminal.stop_all()


def where(terminal: Horolog, keys: list[str], *options: str) -> set[str]:
    """The machines on which those jobs ran."""
    runs = [run for key in keys for run in succeeded(terminal, key, *options)]
    return {run["result"]["machine"] for run in runs}


# The walk


def main() -> int:
    """All steps, on servers of their own; returns the exit status."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HOROLOG_")}
    with tempfile.TemporaryDirectory(prefix="horolog-walk-") as place:
        folder = Path(place)
        home, apart = folder / "desk" / ".horolog", EmbeddedServers(folder / "services")
        (folder / "desk").mkdir()
        desk = Horolog(clean | {"HOROLOG_HOME": str(home)}, folder / "desk")
        terminals = [desk]
        try:
            step("runs the demo", lambda: demo(desk, 20))
            step("the tutorial: a handler, a job, the page, a replay", lambda: tutorial(desk))
            desk.stop_all()
            found = apart.ensure()
            own = {
                "HOROLOG_DATABASE_URL": found.database_url,
                "HOROLOG_NATS_URL": found.nats_url,
                "HOROLOG_NAMESPACE": "walk",
            }
            (folder / "office").mkdir()
            office = Horolog(clean | own, folder / "office")
            terminals.append(office)
            office("migrate")
            step("who paused a job last week", lambda: last_week(office))
            for followed in GUIDES:
                step(f"docs/{followed.page}.md", lambda it=followed: guide(it, folder, clean | own))
            step(
                "three machines, and one of them is lost",
                lambda: three_machines(folder, own, clean),
            )
        finally:
            for terminal in terminals:
                terminal.stop_all()
            EmbeddedServers(home).stop()
            apart.stop()
    return 0


def step(title: str, take: Callable[[], None]) -> None:
    begun = time.monotonic()
    print(title, end=" … ", flush=True)
    take()
    print(f"{time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
