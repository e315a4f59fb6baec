"""The pair of embedded servers of a home: what `horolog dev`, the demo and the tests hold.

    servers = EmbeddedServers(Path(".horolog"))
    endpoints = servers.ensure()      # started, or found
    ...
    servers.stop()                    # for everybody

What fails, and what then: a server that was killed, a reboot, or pid, socket and lock files without
an owner — the next ``ensure`` starts what is missing with the data that are there. A port that
somebody else has taken — another is chosen, and the URL changes this once. Two processes at once —
one starts, the other waits and finds.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from horolog.infrastructure.embedded.failures import EmbeddedHomeFailed
from horolog.infrastructure.embedded.home import Home
from horolog.infrastructure.embedded.nats_server import NatsServer
from horolog.infrastructure.embedded.postgres_server import PostgresServer, StopMode


@dataclass(frozen=True)
class Endpoints:
    """Where the two servers are; the same after a restart (see the module for the exception)."""

    database_url: str
    """For psycopg and libpq; a Unix socket that the home's owner and root can reach."""
    nats_url: str
    """On loopback, with the password of the home: do not print it where others read."""


class EmbeddedServers:
    """The Postgres and the NATS of one home.

    Safe to use from several threads and processes; each call takes the home's lock, except
    :meth:`find`. The servers outlive this object and this process: only :meth:`stop` ends them.
    Every call may raise EmbeddedServerFailed; ``timeout_s`` bounds each wait (for the lock, for a
    server to answer, for a server to end): shorter gives up on a recovery after a crash that is
    still at work, longer keeps the caller waiting for a server that hangs.
    """

    def __init__(self, home: Path, *, timeout_s: float = 60.0) -> None:
        self._home = Home(home)
        self._timeout_s = timeout_s
        self._postgres = PostgresServer(self._home, timeout_s=timeout_s)
        self._nats = NatsServer(self._home, timeout_s=timeout_s)

    @property
    def home(self) -> Path:
        """The directory, with links resolved."""
        return self._home.path

    def ensure(self) -> Endpoints:
        """Start what does not run, find what runs; both answer when this returns.

        The first call on a home makes it, private to the caller, and takes about two seconds.
        """
        with self._alone(create=True):
            self._postgres.ensure()
            self._nats.ensure()
            return self._endpoints()

    def find(self) -> Endpoints | None:
        """Where the servers are, if at least one of them runs; only looks, starts nothing.

        One that is down keeps its URL, since a client that needs only the other must still be able
        to work: its use fails like any connection to a server that is away.
        """
        with _translated(self._home):
            if not self._home.exists or (self._postgres.pid() or self._nats.pid()) is None:
                return None
            if self._postgres.url() is None or self._nats.url() is None:
                return None
            return self._endpoints()

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop both, for every process that uses them; nothing if they do not run.

        ``mode`` is Postgres': ``immediate`` is for a home that nobody will read again.
        """
        with _translated(self._home):
            if not self._home.exists:  # nor a lock; but ghosts, if it was removed under them
                self._nats.stop()
                self._postgres.stop("immediate")
                return
        with self._alone():
            self._nats.stop()
            self._postgres.stop(mode)

    def start_postgres(self) -> None:
        """Start Postgres alone, if it does not run, and wait for it."""
        with self._alone(create=True):
            self._postgres.ensure()

    def stop_postgres(self, mode: StopMode = "fast") -> None:
        """Stop Postgres alone: cleanly (``fast``), or as a crash would leave it (``immediate``)."""
        with self._alone():
            self._postgres.stop(mode)

    def kill_postgres(self) -> None:
        """End Postgres by SIGKILL; its other processes end by themselves a moment later."""
        with self._alone():
            self._postgres.kill()

    def start_nats(self) -> None:
        """Start NATS alone, if it does not run, and wait until JetStream answers."""
        with self._alone(create=True):
            self._nats.ensure()

    def stop_nats(self) -> None:
        """Stop NATS alone, cleanly."""
        with self._alone():
            self._nats.stop()

    def kill_nats(self) -> None:
        """End NATS by SIGKILL."""
        with self._alone():
            self._nats.kill()

    def wipe_jetstream(self) -> None:
        """Delete every stream on disk, whether NATS runs or not. The log must not miss them."""
        with self._alone():
            self._nats.wipe()

    def _endpoints(self) -> Endpoints:
        database_url, nats_url = self._postgres.url(), self._nats.url()
        assert database_url is not None
        assert nats_url is not None
        return Endpoints(database_url=database_url, nats_url=nats_url)

    @contextmanager
    def _alone(self, *, create: bool = False) -> Generator[None]:
        with _translated(self._home):
            if create:
                self._home.create()
            with self._home.locked(timeout_s=self._timeout_s):
                yield


@contextmanager
def _translated(home: Home) -> Generator[None]:
    """Tell what the file system refused in terms of the home."""
    try:
        yield
    except OSError as error:
        raise EmbeddedHomeFailed(
            f"the home {home.path} of the embedded servers cannot be used: {error}. It must be "
            "a directory that you own, on a file system with locks and room; name another with "
            "HOROLOG_HOME"
        ) from error
