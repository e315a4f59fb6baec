"""Canaries: payloads and secrets are planted, and every output of every process is searched."""

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
from tests.acceptance.conftest import Horolog, eventually

from horolog import Scheduler
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.privacy.master_keys import new_master_key
from horolog.interface.settings import Settings

CANARY = "canary-4111-1111"
PLAIN = "plain-canary-2222"
PASSWORD = "hunter2-canary"

WORKER = """
from horolog import Worker, Run
worker = Worker()

@worker.handles("pay")
async def pay(run: Run, card: str) -> dict:
    if run.attempt == 1:
        raise ConnectionError(f"the bank does not answer for {card}")
    return {"charged": card, "before": str(run.last_result)}

@worker.handles("refuse")
def refuse(run: Run, card: str) -> None:
    raise ValueError(f"no such card: {card}")

@worker.handles("fussy")
async def fussy(run: Run, amount: int) -> None: ...
"""


class Listener:
    """Everything that passes NATS: subjects apart from what they carry."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.subjects: list[str] = []
        self.bodies: list[bytes] = []
        self._ready, self._end = threading.Event(), threading.Event()

    @contextmanager
    def listening(self) -> Generator["Listener"]:
        thread = threading.Thread(target=lambda: asyncio.run(self._listen()))
        thread.start()
        assert self._ready.wait(20)
        try:
            yield self
        finally:
            self._end.set()
            thread.join()

    async def _listen(self) -> None:
        connection = await nats.connect(self._url)  # pyright: ignore[reportUnknownMemberType]

        async def heard(message: Any) -> None:
            self.subjects.append(message.subject)
            self.bodies.append(message.data + repr(message.headers).encode())

        await connection.subscribe(">", cb=heard)  # pyright: ignore[reportUnknownMemberType]
        await connection.flush()
        self._ready.set()
        await asyncio.get_running_loop().run_in_executor(None, self._end.wait)
        await connection.close()


@pytest.fixture
def secretive(horolog: Horolog, tmp_path: Path) -> Horolog:
    """Commands whose settings hold secrets."""
    (tmp_path / "paying.py").write_text(WORKER)
    url = horolog.environment["HOROLOG_DATABASE_URL"].replace("horolog@", f"horolog:{PASSWORD}@")
    assert PASSWORD in url
    horolog.environment |= {"HOROLOG_DATABASE_URL": url, "HOROLOG_MASTER_KEY": new_master_key()}
    return horolog


def test_canaries_come_out_nowhere(
    secretive: Horolog, servers: EmbeddedServers, nats_url: str
) -> None:
    horolog, master = secretive, secretive.environment["HOROLOG_MASTER_KEY"]
    said: dict[str, str] = {}

    def run(*arguments: str, status: int = 0) -> Any:
        answer = horolog.within(*arguments, "--json", status=status)
        said[" ".join(arguments)] = answer.out + answer.err
        return answer

    with Listener(nats_url).listening() as listener:
        processes = [
            horolog.start("scanner", "--log-level", "DEBUG"),
            horolog.start("worker", "paying:worker", "--log-level", "DEBUG", "--json"),
        ]
        arguments = [
            Path(f"/proc/{one.process.pid}/cmdline").read_bytes().decode() for one in processes
        ]
        private = ["--payload", json.dumps({"card": CANARY}), "--subject", "ann"]
        registered = {
            name: run("job", "register", name, "--in", "0", "--key", name, *private).json["id"]
            for name in ("pay", "refuse", "fussy")
        }
        horolog.within(
            "job", "register", "refuse", "--in", "0", "--key", "plain",
            "--payload", json.dumps({"card": PLAIN}),
        )  # fmt: skip

        def ended() -> bool:
            found = horolog.within("audit", "runs", "--json").json
            return sum(one["state"] in ("succeeded", "dead") for one in found) == 4

        eventually(ended)
        with Scheduler(settings=_settings(horolog), reveal=True) as revealing:
            (paid,) = revealing.occurrences(job_id=registered["pay"])
            (refused,) = revealing.occurrences(job_id=registered["refuse"])
            assert paid.result == {"charged": CANARY, "before": "None"}
            assert refused.error == f"ValueError: no such card: {CANARY}"
        for identity in registered.values():
            run("job", "show", identity)
            run("job", "history", identity)
            run("job", "changes", identity)
        for occurrence in (paid, refused):
            run("occurrence", "show", str(occurrence.id))
            run("occurrence", "history", str(occurrence.id))
            run("occurrence", "explain", str(occurrence.id))
        for asked in (
            ("job", "list"), ("occurrence", "list"), ("log",), ("audit", "runs"), ("doctor",),
            ("dead-letters", "list"), ("privacy", "status"), ("metrics",), ("verify",),
            ("projection", "verify"), ("job", "show", "nobody"),
        ):  # fmt: skip
            answer = horolog.ask_within(*asked, *([] if asked == ("metrics",) else ["--json"]))
            said[" ".join(asked)] = answer.out + answer.err
        shown = horolog.within("job", "show", "pay", "--reveal", "--json").json
        assert shown["payload"] == {"card": CANARY}
        assert run("forget", "ann", "--yes", "--reason", "a request").json["jobs_cancelled"] == 3
        shown = horolog.within("job", "show", "pay", "--reveal", "--json").json
        assert shown["payload"] == {"$erased": True}
        horolog.stop_all()
    assert any(b"$sealed" in body for body in listener.bodies)
    home = Path(servers.home)
    said |= {
        "what the processes logged": "\n".join(line for one in processes for line in one.seen),
        "what ps shows": "\n".join(arguments),
        "what NATS carried": b"\n".join(listener.bodies).decode(errors="replace"),
        "subjects": "\n".join(listener.subjects),
        "Postgres' log": (home / "postgres" / "postgres.log").read_text(errors="replace"),
        "NATS' log": (home / "nats" / "nats.log").read_text(errors="replace"),
        "settings": repr(_settings(horolog)),
    }
    for where, text in said.items():
        assert CANARY not in text, where
        assert PASSWORD not in text, where
        assert master not in text, where
    for where in ("what the processes logged", "what ps shows", "subjects", "Postgres' log"):
        assert PLAIN not in said[where], where


@pytest.mark.parametrize(
    "away",
    [
        {"HOROLOG_DATABASE_URL": f"postgresql://ann:{PASSWORD}@127.0.0.1:1/x"},
        {"HOROLOG_DATABASE_URL": f"host=127.0.0.1 port=1 password={PASSWORD}"},
        {"HOROLOG_DATABASE_URL": f"postgresql://ann:{PASSWORD}@127.0.0.1:nonsense/x"},
        {"HOROLOG_DATABASE_URL": f"mysql://ann:{PASSWORD}@127.0.0.1/x"},
        {"HOROLOG_NATS_URL": f"nats://ann:{PASSWORD}@127.0.0.1:1"},
        {"HOROLOG_NATS_URL": f"http://ann:{PASSWORD}@127.0.0.1:1"},
        {"HOROLOG_MASTER_KEY": PASSWORD},
    ],
    ids=lambda stated: " ".join(stated),
)
def test_a_refusal_does_not_repeat_a_secret(horolog: Horolog, away: dict[str, str]) -> None:
    horolog.environment |= away
    for arguments in (["doctor"], ["privacy", "status"], ["job", "list", "--json"]):
        answer = horolog.ask_within(*arguments)
        assert PASSWORD not in answer.out + answer.err, arguments


def _settings(horolog: Horolog) -> Settings:
    return Settings.read(environment=horolog.environment)
