"""The scratch environment of the peers: a virtual environment, and a folder of Node packages."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer: its program here, and the settings that its documentation calls fastest."""

    name: str
    program: str
    settings: str
    share: float = 1.0
    """Of the occurrences: a slow peer gets fewer, since its rate does not depend on them."""
    beside_many: bool = False
    """Measured with a million future jobs also; not those that take hours to take them in."""


PEERS = (
    Peer("pgqueuer", "pgqueuer_peer.py", "asyncpg, uvloop, batches of 500, durable tables",
         beside_many=True),
    Peer("graphile-worker", "graphile_worker_peer.js",
         "24 at once, local queue of 500, batched completions; keeps no history",
         beside_many=True),
    Peer("pg-boss", "pg_boss_peer.js", "fetch and complete by 500, two at once", beside_many=True),
    Peer("dbos", "dbos_peer.py", "one queue, polled every 50 ms", share=0.1),
    Peer("celery", "celery_peer.py", "Redis with an append-only file, two processes, late acks",
         share=0.1),
    Peer("procrastinate", "procrastinate_peer.py", "psycopg, uvloop, 50 at once", share=0.1),
    Peer("apscheduler", "apscheduler_peer.py", "SQLAlchemy store, 20 threads", share=0.1),
)  # fmt: skip


class Environment:
    """Where the peers are installed; made once, kept for the next run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._python = folder / "venv" / "bin" / "python"

    def install(self) -> None:
        """Installs what is missing; Node's peers only where npm is."""
        wanted = (HERE / "requirements.txt").read_text()
        stamp = self._folder / "installed.txt"
        if not stamp.exists() or stamp.read_text() != wanted:
            uv = shutil.which("uv")
            venv = str(self._folder / "venv")
            if uv:
                _run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, venv)
                pip = [uv, "pip", "install", "--quiet", "--python", str(self._python)]
            else:
                _run(sys.executable, "-m", "venv", venv)
                pip = [str(self._python), "-m", "pip", "install", "--quiet"]
            _run(*pip, "-r", str(HERE / "requirements.txt"))
            stamp.write_text(wanted)
        npm, package = shutil.which("npm"), self._folder / "package.json"
        described = (HERE / "package.json").read_text()
        if npm and (not package.exists() or package.read_text() != described):
            package.write_text(described)
            _run(npm, "install", "--silent", "--prefix", str(self._folder))

    def missing(self, peer: Peer) -> str | None:
        """Why a peer cannot be measured here."""
        if peer.program.endswith(".js") and not (self._folder / "node_modules").exists():
            return "it needs Node and npm, which are not here"
        return None

    def command(self, peer: Peer, url: str, jobs: int, others: int) -> list[str]:
        """The command line of one run."""
        runner = "node" if peer.program.endswith(".js") else str(self._python)
        values = ["--url", url, "--jobs", str(jobs), "--others", str(others)]
        return [runner, str(HERE / peer.program), *values]

    def variables(self) -> dict[str, str]:
        """The environment variables of one run."""
        return os.environ | {"NODE_PATH": str(self._folder / "node_modules")}


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
