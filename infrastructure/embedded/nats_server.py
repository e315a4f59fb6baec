"""The embedded NATS of a home, with JetStream on disk.

It listens on loopback alone, where every user of the machine can knock; so it asks for a password
that the home made up, and the URL carries it. JetStream acknowledges before it syncs, which is left
as it is: what it forgets the log puts right.

The port is drawn below the range that the system gives to outgoing connections. In that range a
client that keeps trying to reach a stopped server is given, sooner or later, the very port that it
wants to reach, connects to itself, and the server can never come back to its port.
"""

import secrets
import shutil
import signal
import socket
import time

from horolog.infrastructure.embedded import processes
from horolog.infrastructure.embedded.failures import EmbeddedNatsFailed
from horolog.infrastructure.embedded.home import POLL_S, Home, write_whole
from horolog.infrastructure.embedded.jetstream_probe import jetstream_answers
from horolog.infrastructure.embedded.launch import claimed, detached
from horolog.infrastructure.embedded.server_log import ServerLog
from horolog.infrastructure.embedded.wheels import nats_program

USER = "horolog"
LOOPBACK = "127.0.0.1"
PORTS = range(20000, 30000)
_PORT_GRACE_S = 1.0
"""A server that somebody killed a moment ago may not have let go of its port yet."""
ATTEMPTS = 5
"""How often another port is tried when somebody takes it between our look and the server's."""


class NatsServer:
    """The NATS of one home. Every method but :meth:`pid` and :meth:`url` needs its lock."""

    def __init__(self, home: Home, *, timeout_s: float) -> None:
        self._home = home
        self._timeout_s = timeout_s
        self._directory = home.path / "nats"
        self._signature = processes.Signature("nats-server", home.mark)
        self._log = ServerLog(self._directory / "nats.log")

    def pid(self) -> int | None:
        """The pid of the running server, or None."""
        return processes.find(self._signature)

    def url(self) -> str | None:
        """The URL, whether the server runs or not; None before the first start."""
        kept = self._home.remembered()
        if kept.nats_port is None or kept.nats_password is None:
            return None
        return f"nats://{USER}:{kept.nats_password}@{LOOPBACK}:{kept.nats_port}"

    def ensure(self) -> None:
        """Start the server unless it runs; return when JetStream answers.

        Raises EmbeddedNatsFailed with the server's last lines.
        """
        pid = self.pid()
        if pid is not None and self._recorded_pid() != pid:
            self.kill()  # its directory was removed under it; it is the ghost of that
            pid = None
        if pid is None or not self._answers(pid):
            self._start()

    def stop(self) -> None:
        """End the server if it runs; one that does not end by itself is killed."""
        self._end([signal.SIGTERM, signal.SIGKILL])

    def kill(self) -> None:
        """End the server by SIGKILL, with whatever it has not written yet."""
        self._end([signal.SIGKILL])

    def wipe(self) -> None:
        """Delete all streams on disk, whether the server runs or not, as a lost disk would.

        A server that runs goes on with what it has in memory and fails sooner or later.
        """
        store = self._directory / "jetstream"
        gone = self._directory / f"wiped-{secrets.token_hex(4)}"
        try:
            store.rename(gone)
        except FileNotFoundError:
            return
        shutil.rmtree(gone)

    def _end(self, ways: list[signal.Signals]) -> None:
        pid = self.pid()
        if pid is not None and not processes.end(self._signature, pid, ways, self._timeout_s):
            raise self._failed(f"(pid {pid}) does not end", since=0)

    def _start(self) -> None:
        account = self._home.servers
        self._home.directory("nats", owner=account)
        program = nats_program(account)
        lock = self._directory / "lock"
        with claimed(lock, owner=account, timeout_s=self._timeout_s) as claim:
            if claim is None:
                raise EmbeddedNatsFailed(
                    f"a NATS that cannot be seen from here still holds {lock}: it runs in "
                    "another container, or is ending; stop it where it was started"
                )
            for _ in range(ATTEMPTS):
                since = self._log.size()
                self._configure()
                # Every path of its is relative: as another user it may not enter what lies above.
                pid = detached(
                    [str(program), "--config", "nats.conf", "--name", self._home.mark],
                    account=account,
                    directory=self._directory,
                    log=self._log.path,
                    log_owner=account,
                    claim=claim,
                )
                if self._answers(pid):
                    return
                if "address already in use" not in self._log.quoted(since=since):
                    raise self._failed("ended while it started", since)
        raise self._failed(f"found its port taken {ATTEMPTS} times", since=0)

    def _answers(self, pid: int) -> bool:
        """Wait until JetStream answers; False if the server ends before."""
        kept = self._home.remembered()
        port, password = kept.nats_port, kept.nats_password
        if port is None or password is None:
            self.kill()  # nobody knows how to reach it
            return False
        address, since = (LOOPBACK, port), self._log.size()

        def answers() -> bool:
            return jetstream_answers(address, server=self._home.mark, user=USER, password=password)

        what = processes.awaited(self._signature, pid, answers, self._timeout_s)
        if what == "silent":
            raise self._failed(f"does not answer after {self._timeout_s:g} s", since)
        return what == "answers"

    def _failed(self, what: str, since: int) -> EmbeddedNatsFailed:
        return EmbeddedNatsFailed(
            f"the embedded NATS of {self._home.path} {what}. Its last lines "
            f"({self._log.path}):\n{self._log.quoted(since=since)}\n"
            "Remove what they complain of, choose another home with HOROLOG_HOME, or name a "
            "server of your own with HOROLOG_NATS_URL."
        )

    def _recorded_pid(self) -> int | None:
        try:
            return int((self._directory / "nats.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _configure(self) -> None:
        """Write the configuration, with the port of before if it is still to be had."""
        kept = self._home.remembered()
        port = kept.nats_port
        if port is None or not _is_free_within(port, _PORT_GRACE_S):
            port = free_port()
        password = kept.nats_password or secrets.token_hex(16)
        self._home.remember(kept.model_copy(update={"nats_port": port, "nats_password": password}))
        text = _CONFIGURATION.format(port=port, user=USER, password=password)
        write_whole(self._directory / "nats.conf", text, owner=self._home.servers)


_CONFIGURATION = """\
# Written by Horolog at each start.
listen: "127.0.0.1:{port}"
authorization {{ user: "{user}", password: "{password}" }}
pid_file: "nats.pid"
log_file: "nats.log"
logfile_size_limit: 8MB
logfile_max_num: 2
jetstream {{ store_dir: "jetstream" }}
"""


def free_port() -> int:
    """A port of loopback below the range of outgoing connections that nobody listens at."""
    for _ in range(200):
        port = secrets.choice(PORTS)
        if _is_free(port):
            return port
    raise EmbeddedNatsFailed(
        f"no free port was found on {LOOPBACK} between {PORTS.start} and {PORTS.stop - 1}: "
        "see what listens there (`ss -ltn`)"
    )


def _is_free_within(port: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not _is_free(port):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as attempt:
        # As the server does it: closed connections that linger on the port do not count.
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
