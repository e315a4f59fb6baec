"""The ways out: what takes a notice and what does not; neither a shell nor time is given away."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from horolog.application.alerting.ports import NotDelivered
from horolog.application.alerting.rules import AlertRule
from horolog.domain.alert_events import AlertWay
from horolog.infrastructure.alerts.delivering import Delivering
from horolog.infrastructure.alerts.subject import NatsSubjects

NOTICE = {"id": "1:1", "text": "dead letters of team: 3"}


async def deliver(
    way: AlertWay, timeout_s: float = 10.0, nats_url: str | None = None, **to: Any
) -> None:
    subjects = NatsSubjects(nats_url, "t")
    commands = to.pop("commands", True)
    rule = AlertRule.checked("team", deadlines=True, **{way: to["to"]})
    ways = Delivering(
        subjects, timeout_s=timeout_s, environment={"PATH": os.defpath}, commands=commands
    )
    try:
        await ways.deliver(rule, way, NOTICE)
    finally:
        await subjects.close()


async def test_a_command_gets_the_notice_on_its_input_and_its_arguments_as_they_are(
    tmp_path: Path,
) -> None:
    into = tmp_path / "into"
    program = (
        "import os, sys; open(sys.argv[1], 'w').write("
        "sys.stdin.read() + sys.argv[2] + str([n for n in os.environ if n.startswith('HOROLOG')]))"
    )
    await deliver("command", to=[sys.executable, "-c", program, str(into), "$(id) ; `id` > x"])
    assert into.read_text() == json.dumps(NOTICE) + "\n$(id) ; `id` > x[]"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/program"], "cannot be started: No such file"),
        (["."], "cannot be started"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "exit status 3"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], "signal 9"),
    ],
)
async def test_a_command_that_fails_did_not_take_it(command: list[str], why: str) -> None:
    with pytest.raises(NotDelivered, match=why):
        await deliver("command", to=command)


async def test_a_command_that_takes_too_long_is_killed_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open(sys.argv[1], 'w').write(f'{os.getpid()} {child.pid}')\n"
        "time.sleep(60)"
    )
    with pytest.raises(NotDelivered, match=r"longer than 1\.5 s"):
        await deliver("command", timeout_s=1.5, to=[sys.executable, "-c", program, str(pids)])
    for pid in pids.read_text().split():
        assert _is_gone(int(pid))


def _is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


async def test_a_scanner_that_runs_no_commands_says_so() -> None:
    with pytest.raises(NotDelivered, match="alert_commands"):
        await deliver("command", to=["true"], commands=False)


@asynccontextmanager
async def server(
    answer: Callable[[bytes], bytes | None],
) -> AsyncGenerator[tuple[str, list[bytes]]]:
    seen: list[bytes] = []
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await say(reader, writer)
        finally:
            writer.close()
            served.set()

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        seen.append(head + await reader.readexactly(length))
        said = answer(head)
        if said is None:
            await over.wait()
        writer.write(said or b"")

    served = asyncio.Event()
    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", seen
        over.set()
        await served.wait()


async def test_a_webhook_gets_a_post_of_json_and_takes_it_by_any_200() -> None:
    async with server(lambda _: b"HTTP/1.1 204 No Content\r\n\r\n") as (place, seen):
        await deliver("webhook", to=f"http://ann:s%20t@{place}/a/b?c=d")
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /a/b?c=d HTTP/1.1\r\n")
    assert b"Authorization: Basic YW5uOnMgdA==" in head
    assert json.loads(body) == NOTICE


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 503 Busy\r\n\r\n", "127.0.0.1 answered 503"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "answered 302"),
        (b"SSH-2.0\r\n", "not answer as an HTTP server"),
        (b"", "not answer as an HTTP server"),
        (b"x" * 200_000, "cannot be reached: ValueError"),
        (None, "longer than 0.5 s"),
    ],
)
async def test_a_webhook_that_answers_otherwise_did_not_take_it(
    answer: bytes | None, why: str
) -> None:
    async with server(lambda _: answer) as (place, _):
        with pytest.raises(NotDelivered, match=why) as refused:
            await deliver("webhook", timeout_s=0.5, to=f"http://{place}/T0-secret")
    assert "T0-secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/s3cret", "https://127.0.0.1:1/s3cret"])
async def test_a_webhook_that_is_not_there_is_named_without_its_path(url: str) -> None:
    with pytest.raises(
        NotDelivered, match=r"127\.0\.0\.1 cannot be reached: Connection"
    ) as refused:
        await deliver("webhook", to=url)
    assert "s3cret" not in str(refused.value)


async def test_a_subject_of_nats_gets_the_notice(nats_url: str, namespace: str) -> None:
    client = Client()
    await client.connect(nats_url)
    try:
        subscription = await client.subscribe(f"{namespace}.alerts")  # pyright: ignore[reportUnknownMemberType]
        await client.flush()
        await deliver("nats", nats_url=nats_url, to=f"{namespace}.alerts")
        message = await subscription.next_msg(5)
        assert json.loads(message.data) == NOTICE
    finally:
        await client.close()


async def test_a_nats_that_is_away_did_not_take_it() -> None:
    with pytest.raises(NotDelivered, match="NATS cannot be reached"):
        await deliver("nats", nats_url="nats://127.0.0.1:1", to="alerts")
    with pytest.raises(NotDelivered, match="there is no NATS"):
        await deliver("nats", to="alerts")
