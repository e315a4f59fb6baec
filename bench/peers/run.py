"""`make bench-peers`: the same work for Horolog and its peers in turn, on one Postgres.

    python bench/peers/run.py [--occurrences N] [--runs N] [--others N,…] [--peers a,b]
                              [--minutes N] [--json FILE]

The work: no-op jobs that are all due, one worker process (and one scanner process for Horolog). A
peer's clock runs from its first handler to its last commit; Horolog's from the due instant to the
last Succeeded in the log, so that its detection counts and the peers' does not. The peers run in
the settings that they document for throughput, installed in a folder of their own (`--folder`).
Each run of Horolog ends with `verify`; a violation makes the exit status 1.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import monotonic

import psycopg
from psycopg import sql
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from bench import whole_path
from bench.peers.environment import PEERS, Environment, Peer

from horolog.infrastructure.embedded import EmbeddedServers, Endpoints
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log

ROOT = Path(__file__).resolve().parent.parent.parent
RUN_TIMEOUT_S = 1_800


@dataclass(frozen=True, slots=True)
class Compared:
    """Medians of runs that took turns; ``ratio`` is Horolog's over the peer's."""

    peer: str
    settings: str
    horolog_per_s: float
    peer_per_s: float
    ratio: float
    others: int
    runs: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs that followed each other."""

    theirs: float
    ours: float


class Ring:
    """One pair of servers, on which each run has a database or a namespace of its own."""

    def __init__(self, endpoints: Endpoints, environment: Environment, logs: Path) -> None:
        self._endpoints = endpoints
        self._environment = environment
        self._logs = logs
        self._runs = 0
        self.violations = 0

    def horolog(self, jobs: int, others: int) -> float:
        """Occurrences a second of one run; its log is verified."""
        with self._database() as (url, name):
            migrate(Database(url, name))
            settings = Settings.read(url, nats_url=self._endpoints.nats_url, namespace=name)
            done = whole_path.run(settings, jobs, logs=self._logs, others=others)
            self.violations += verify_log(settings).violation_count
        return done.per_second

    def peer(self, peer: Peer, jobs: int, others: int) -> float:
        """Jobs a second of one run."""
        with self._database() as (url, _):
            done = subprocess.run(
                self._environment.command(peer, url, jobs, others),
                env=self._environment.variables(), cwd=self._logs,
                capture_output=True, text=True, check=False, timeout=RUN_TIMEOUT_S,
            )  # fmt: skip
        if done.returncode:
            sys.exit(f"{peer.name} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
        return float(json.loads(done.stdout.strip().splitlines()[-1])["per_second"])

    @contextmanager
    def _database(self) -> Generator[tuple[str, str]]:
        """The URL and the name of a database that is there for one run."""
        self._runs += 1
        name = f"run_{self._runs}"
        url = self._endpoints.database_url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            try:
                yield url.replace("/postgres?", f"/{name}?"), name
            finally:
                drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
                connection.execute(drop.format(sql.Identifier(name)))

    def pair(self, peer: Peer, occurrences: int, others: int) -> Pair:
        """One run of the peer, and then one of Horolog."""
        theirs = self.peer(peer, max(1, int(occurrences * peer.share)), others)
        return Pair(theirs, self.horolog(occurrences, others))


def compared(peer: Peer, others: int, pairs: Sequence[Pair]) -> Compared:
    """The medians of what was run in turn."""
    ours = median(pair.ours for pair in pairs)
    theirs = median(pair.theirs for pair in pairs)
    return Compared(
        peer=peer.name, settings=peer.settings, horolog_per_s=ours, peer_per_s=theirs,
        ratio=ours / theirs, others=others, runs=len(pairs),
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--occurrences", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--others", default="0", help="future jobs that stand beside; several: 0,1000000"
    )
    parser.add_argument("--minutes", type=float, help="begin no run after so many")
    parser.add_argument("--peers", default=",".join(peer.name for peer in PEERS))
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench-peers")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    chosen = [peer for peer in PEERS if peer.name in arguments.peers.split(",")]
    if unknown := set(arguments.peers.split(",")) - {peer.name for peer in PEERS}:
        parser.error(f"no peer is called {', '.join(sorted(unknown))}")
    work = [
        (peer, others)
        for others in map(int, arguments.others.split(","))
        for peer in chosen
        if peer.beside_many or not others
    ]
    arguments.folder.mkdir(exist_ok=True)
    environment = Environment(arguments.folder.resolve())
    environment.install()
    done: dict[tuple[Peer, int], list[Pair]] = {}
    until = monotonic() + 60 * (arguments.minutes or 1e6)
    with tempfile.TemporaryDirectory(prefix="horolog-bench-") as directory:
        servers = EmbeddedServers(Path(directory) / "home")
        try:
            ring = Ring(servers.ensure(), environment, Path(directory))
            for peer in chosen:
                if why := environment.missing(peer):
                    print(f"{peer.name} is left out: {why}")
                    work = [(other, others) for other, others in work if other is not peer]
            # Round by round, A B A B, so that a drift of the machine meets all of them; and where
            # the minutes end, each has been run about as often.
            for _ in range(arguments.runs):
                for peer, others in work:
                    if monotonic() > until:
                        break
                    pairs = done.setdefault((peer, others), [])
                    pairs.append(ring.pair(peer, arguments.occurrences, others))
                    rows = [compared(*of, pairs) for of, pairs in done.items()]
                    print(f"{peer.name} beside {others:,}: {pairs[-1]}", file=sys.stderr)
                    if arguments.json is not None:
                        document = [asdict(row) for row in rows]
                        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
        finally:
            servers.stop("immediate")
    show([compared(*of, pairs) for of, pairs in done.items()])
    print(f"violations: {ring.violations}")
    return 1 if ring.violations else 0


def show(rows: Sequence[Compared]) -> None:
    table = Table(title="occurrences per second, medians of runs in turn")
    for heading in ("peer", "its settings"):
        table.add_column(heading)
    for heading in ("future jobs", "peer", "Horolog", "ratio", "runs"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.peer, row.settings, f"{row.others:,}", f"{row.peer_per_s:,.0f}",
            f"{row.horolog_per_s:,.0f}", f"{row.ratio:.2f}", str(row.runs),
        )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
