"""What the README says is so: its program and its commands are run, its numbers and links hold."""

import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.acceptance.conftest import HOROLOG, Horolog, eventually

from horolog import Scheduler
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.worker.settings import WorkerSettings
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[list[str]]:
    """The commands of a console block, without their comments."""
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


@pytest.fixture
def terminal(clean_environment: dict[str, str], tmp_path: Path) -> Generator[Horolog]:
    commands = Horolog(clean_environment, tmp_path)
    try:
        yield commands
    finally:
        commands.stop_all()
        EmbeddedServers(tmp_path / ".horolog").stop()


def test_the_program_and_the_commands_of_the_readme_run(terminal: Horolog) -> None:
    (program,) = blocks("python")
    first, second = blocks("console")
    (statement,) = blocks("sql")
    (terminal.folder / "jobs.py").write_text(program)

    install, dev, python, *rest = commands(first)
    assert install[:2] == ["pip", "install"]
    terminal.start(*dev[1:]).wait_for_line(lambda line: "Ctrl-C stops" in line)
    registered = subprocess.run(
        [sys.executable, *python[1:]],
        env=terminal.environment,
        cwd=terminal.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "bill-ann" in registered.stdout
    *ordinary, follow = rest
    for command in ordinary + commands(second):
        assert command[0] == "horolog"
        assert terminal.ask(*command[1:]).status == 0, command
    terminal.start(*follow[1:]).wait_for_line(lambda line: "occurrence.succeeded" in line)
    with Scheduler(home=str(terminal.folder / ".horolog")) as scheduler:
        billed = scheduler.job("bill-ann")
        (run,) = eventually(lambda: scheduler.occurrences(job_id=billed.id, state="succeeded"))
        result = scheduler.occurrence(run.id).result
    assert result == {"charged": "10 to ann", "key": str(run.id)}

    found = EmbeddedServers(terminal.folder / ".horolog").find()
    assert found is not None
    job_id = terminal("job", "show", "bill-bob", "--json").json["id"]
    database = Database(found.database_url, "horolog")
    statement = statement.replace("<job id>", job_id)
    answers = database.query(database.sql(statement))
    database.close()
    assert [(row[2], row[3]) for row in answers][-1] == ("job.paused.1", "enough")
    terminal.verify()


def test_every_command_of_the_readme_has_help_and_json() -> None:
    table = re.findall(r"^\| `horolog ([^|]*)\|", README, re.MULTILINE)
    names = {cell.split("`")[0].split()[0] for cell in table} | {"worker", "verify"}
    helped = subprocess.run([*HOROLOG, "--help"], capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^  ([a-z][a-z-]+)  ", helped.stdout, re.MULTILINE))
    assert names == listed


def test_the_numbers_of_the_readme_are_the_defaults() -> None:
    worker, scanner = WorkerSettings(), ScannerSettings()
    assert f"after their lease ({worker.lease_s:g} s)" in README
    assert f"after the lease ({scanner.lease_s:g} s)" in README
    assert f"`drain_grace_s` ({worker.drain_grace_s:g} s)" in README
    assert worker.unknown_handler_wait_s == 3600
    assert "waits an hour" in README
