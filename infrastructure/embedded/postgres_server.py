"""The embedded Postgres of a home: started, recognised, stopped.

At most one server writes to the data: starting needs the home's lock, finds no process with the
home's mark, and holds the lock that a former server's last process would still hold. The URL is the
same after a restart.
"""

import signal
from contextlib import suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from psycopg import pq

from horolog.infrastructure.embedded import processes
from horolog.infrastructure.embedded.failures import EmbeddedPostgresFailed
from horolog.infrastructure.embedded.home import Home
from horolog.infrastructure.embedded.launch import claimed, detached
from horolog.infrastructure.embedded.postgres_cluster import ROLE, PostgresCluster
from horolog.infrastructure.embedded.server_log import ServerLog
from horolog.infrastructure.embedded.socket_directory import socket_directory
from horolog.infrastructure.embedded.wheels import postgres_programs

StopMode = Literal["fast", "immediate"]

DATABASE = "postgres"


class PostgresServer:
    """The Postgres of one home. Every method but :meth:`pid` and :meth:`url` needs its lock."""

    def __init__(self, home: Home, *, timeout_s: float) -> None:
        self._home = home
        self._timeout_s = timeout_s
        self._directory = home.path / "postgres"
        self._cluster = PostgresCluster(home)
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
        if pid is not None and self.url() is None:
            self.stop("fast")  # nobody knows any more where its socket is
            pid = None
        if pid is not None and not self._cluster.is_served_by(pid):
            self.stop("immediate")  # its data were removed under it; it is the ghost of those
            pid = None
        if pid is None or not self._answers(pid, since=self._log.size()):
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
        sockets = self._home.remembered().socket_directory
        if sockets is not None and not sockets.is_relative_to(self._home.path):
            with suppress(OSError):  # a crash left its socket there: the next start clears it
                sockets.rmdir()

    def kill(self) -> None:
        """End the server by SIGKILL, as the kernel would for want of memory."""
        pid = self.pid()
        if pid is not None:
            self._end(pid, [signal.SIGKILL])

    def _end(self, pid: int, ways: list[signal.Signals]) -> None:
        if not processes.end(self._signature, pid, ways, self._timeout_s):
            raise self._failed(f"(pid {pid}) does not end", since=0)

    def _start(self) -> None:
        # The server goes from its data to its socket through here, so it may pass; not look.
        self._home.directory("postgres", owner=self._home.owner, mode=0o711)
        run = self._home.directory("postgres/run", owner=self._home.servers)
        programs = postgres_programs(self._home.servers)
        lock = self._directory / "lock"
        with claimed(lock, owner=self._home.owner, timeout_s=self._timeout_s) as claim:
            if claim is None:
                raise EmbeddedPostgresFailed(
                    f"a Postgres that cannot be seen from here still holds {lock}: it runs in "
                    "another container, or is ending; stop it where it was started"
                )
            self._cluster.make(programs, claim)
            self._cluster.check_version(programs)
            sockets = self._sockets(run)
            self._cluster.clear_leftovers(sockets)
            self._cluster.configure(programs, "../run" if sockets == run else str(sockets))
            since = self._log.size()
            pid = self._launch(programs, claim)
        if not self._answers(pid, since):
            raise self._failed("ended while it started", since)

    def _sockets(self, run: Path) -> Path:
        remembered = self._home.remembered()
        sockets = socket_directory(
            run, remembered=remembered.socket_directory, account=self._home.servers
        )
        self._home.remember(remembered.model_copy(update={"socket_directory": sockets}))
        return sockets

    def _launch(self, programs: Path, claim: int) -> int:
        data = self._cluster.data
        program, seen = str(programs / "postgres"), self._cluster.seen_by_server(data)
        return detached(
            [program, "-D", seen, "-c", self._signature.argument],
            account=self._home.servers,
            directory=data,
            log=self._log.path,
            log_owner=self._home.owner,
            claim=claim,
        )

    def _answers(self, pid: int, since: int) -> bool:
        """Wait until the server takes connections; False if it ends before."""
        conninfo = f"{self.url()}&connect_timeout=5".encode()

        def answers() -> bool:
            return pq.PGconn.ping(conninfo) == pq.Ping.OK

        what = processes.awaited(self._signature, pid, answers, self._timeout_s)
        if what == "silent":
            raise self._failed(f"takes no connections after {self._timeout_s:g} s", since)
        return what == "answers"

    def _failed(self, what: str, since: int) -> EmbeddedPostgresFailed:
        return EmbeddedPostgresFailed(
            f"the embedded Postgres of {self._home.path} {what}. Its last lines "
            f"({self._log.path}):\n{self._log.quoted(since=since)}\n"
            "Remove what they complain of, choose another home with HOROLOG_HOME, or name a "
            "server of your own with HOROLOG_DATABASE_URL."
        )
