"""The how-to guides, as somebody follows them: every command that one shows is run, in its order,
on a namespace of the guide's own, and answers as the guide says.

A guide takes some things for granted (a job, a file, an id): `prepare` has them, `words` says what
stands for them in the text. The suite runs what runs in its own process; `make walk` also starts
the processes and asks what runs beside them.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import psycopg
from psycopg import sql
from tests.acceptance.conftest import Answer, eventually
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.guide import Guide, Says
from tests.acceptance.guides.left_out import reason
from tests.acceptance.shown import Shown, shown

PROCESSES = {"scanner", "worker", "web", "dev", "projection run"}
READY = {"web": "Ctrl-C stops", "dev": "Ctrl-C stops"}


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
