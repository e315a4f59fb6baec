"""A pooler that shares sessions among transactions is refused; one that does not is let be."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.infrastructure.conftest import CuttingProxy

from horolog import Every, Scheduler
from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.postgres import poolers
from horolog.infrastructure.postgres.database import Database

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")

needs_pgbouncer = pytest.mark.skipif(
    PGBOUNCER is None, reason="there is no pgbouncer here (Debian: apt-get install pgbouncer)"
)

Pools = Callable[[str], str]


@pytest.fixture
def pools(database_url: str, proxy: CuttingProxy) -> Generator[Pools]:
    """Starts a pgbouncer in a pool mode; its URL. It may not reach the server's socket itself."""
    assert PGBOUNCER is not None
    program = PGBOUNCER
    folder = Path(tempfile.mkdtemp(prefix="horolog-pool-"))
    server = conninfo_to_dict(proxy.url)
    folder.chmod(0o755)
    as_nobody = {"user": "nobody"} if os.geteuid() == 0 else {}  # it refuses to run as root
    running: list[subprocess.Popen[bytes]] = []

    def start(mode: str) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        file = folder / f"{mode}.ini"
        file.write_text(
            f"[databases]\n* = host={server['host']} port={server['port']}"
            f" user={server['user']}\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port={port}\n"
            f"unix_socket_dir=\nauth_type=any\npool_mode={mode}\n"
        )
        file.chmod(0o644)
        running.append(
            subprocess.Popen([program, "-q", file], stderr=subprocess.DEVNULL, **as_nobody)  # pyright: ignore[reportArgumentType, reportCallIssue]
        )
        url = make_conninfo(database_url, host="127.0.0.1", port=port)
        deadline = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(url).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            else:
                return url

    yield start
    for process in running:
        process.terminate()
        process.wait()
    shutil.rmtree(folder)


@needs_pgbouncer
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_shares_sessions_is_refused(
    pools: Pools, database: Database, mode: str
) -> None:
    through = Database(pools(mode), database.namespace)
    with pytest.raises(InvalidSetting, match="pool_mode=session"), through.session():
        pass
    through.close()


@needs_pgbouncer
def test_it_is_noticed_while_others_use_it(pools: Pools, database: Database) -> None:
    url = pools("transaction")
    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        one.execute("SELECT 1")
        two.execute("SELECT 1")
        through = Database(url, database.namespace)
        with pytest.raises(InvalidSetting, match="pooler"):
            through.query(through.sql("SELECT 1"))
        through.close()


@needs_pgbouncer
def test_a_pooler_that_gives_each_its_own_session_is_let_be(
    pools: Pools, database: Database
) -> None:
    with Scheduler(pools("session"), namespace=database.namespace) as scheduler:
        assert scheduler.register("a", schedule=Every(60)).name == "a"


@needs_pgbouncer
def test_a_command_may_be_given_within_a_transaction_of_any_pooler(
    pools: Pools, database: Database
) -> None:
    with (
        Scheduler(database.url, namespace=database.namespace) as scheduler,
        psycopg.connect(pools("transaction"), prepare_threshold=None) as shared,
    ):
        scheduler.register("a", schedule=Every(60), key="a", connection=shared)
        shared.commit()
        assert database.query(database.sql("SELECT count(*) FROM :schema.inbox")) == [(1,)]


def test_without_a_pooler_nothing_is_asked_twice(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poolers, "_shares", pytest.fail)
    fresh = Database(database.url, database.namespace)
    assert fresh.query(fresh.sql("SELECT 1")) == [(1,)]
    fresh.close()
