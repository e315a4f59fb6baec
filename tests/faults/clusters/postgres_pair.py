"""A Postgres and its standby, with synchronous replication; the standby can take over."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.embedded.accounts import account_for_servers, owner_of
from horolog.infrastructure.embedded.wheels import postgres_programs

_STANDBY = "application_name=standby"


class PostgresPair:
    """The first is the one of ``servers``; the second lives in ``folder`` until it is closed."""

    def __init__(self, servers: EmbeddedServers, folder: Path) -> None:
        self._servers = servers
        self._folder = folder
        self._account = account_for_servers(owner_of(servers.home))
        self._programs = postgres_programs(self._account)
        self._first = servers.ensure().database_url
        for above in (servers.home, servers.home.parent):
            above.chmod(0o711)  # the standby's account goes through them to the socket of the first
        self._standby: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Both, as libpq takes them: whichever takes writes."""
        before, _, options = self._first.partition("?")
        first = dict(part.split("=", 1) for part in options.split("&"))
        hosts = f"{first['host']},{self._folder}"
        return f"{before}?host={hosts}&port=5432,5432&target_session_attrs=read-write"

    @property
    def standby_url(self) -> str:
        return f"{self._first.partition('?')[0]}?host={self._folder}&port=5432"

    def start_standby(self) -> None:
        """Copies the first and follows it; from then on no commit is acknowledged without it."""
        self._folder.mkdir()
        self._account.give(self._folder)
        first = conninfo_to_dict(self._first)
        subprocess.run(
            [self._programs / "pg_basebackup", "--pgdata", "data", "--write-recovery-conf",
             "--checkpoint=fast", "--wal-method=stream", "--host", str(first["host"]),
             "--port", "5432", "--username", str(first["user"])],
            cwd=self._folder, check=True, capture_output=True, **self._account.owning(),
        )  # fmt: skip
        settings = [
            f"primary_conninfo={_conninfo(first)} {_STANDBY}",
            f"unix_socket_directories={self._folder}",
        ]
        with (self._folder / "said.log").open("ab") as said:
            self._standby = subprocess.Popen(
                [self._programs / "postgres", "-D", "data",
                 *(part for setting in settings for part in ("-c", setting))],
                cwd=self._folder, stdout=said, stderr=said,
                env={"PATH": os.defpath, "LC_ALL": "C"}, **self._account.owning(),
            )  # fmt: skip
        with psycopg.connect(self._first, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            connection.execute("SELECT pg_reload_conf()")
            _until(
                lambda: connection.execute(
                    "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
                ).fetchone()
            )

    def lose_the_first(self) -> None:
        """The first is killed and stays away; the standby takes over."""
        self._servers.kill_postgres()
        with psycopg.connect(self.standby_url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote(wait => true)")

    def close(self) -> None:
        if self._standby is not None:
            self._standby.send_signal(signal.SIGQUIT)
            self._standby.wait()


def _conninfo(first: Mapping[str, object]) -> str:
    return f"host={first['host']} port=5432 user={first['user']}"


def _until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline, "the standby does not follow"
        time.sleep(0.05)
