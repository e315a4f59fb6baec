"""A NATS server that lets in whom it knows, over TLS with an authority of its own."""

import asyncio
import socket
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import trustme

from horolog.domain.errors import InvalidSetting, QueueUnavailable
from horolog.infrastructure.embedded.accounts import ourselves
from horolog.infrastructure.embedded.wheels import nats_program
from horolog.infrastructure.nats.connection import connect, disconnect

Starts = Callable[[str], int]


@pytest.fixture
def starts(tmp_path: Path) -> Generator[Starts]:
    """Starts a server on loopback with this much more of a configuration; its port."""
    running: list[subprocess.Popen[bytes]] = []

    def start(more: str) -> int:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        file = tmp_path / "nats.conf"
        file.write_text(
            f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{tmp_path}/js" }}\n{more}\n'
        )
        running.append(subprocess.Popen([PROGRAM, "-c", file], stderr=subprocess.DEVNULL))
        return port

    yield start
    for process in running:
        process.terminate()
        process.wait()


PROGRAM = nats_program(ourselves())


async def let_in(url: str) -> None:
    """Connects as soon as the server listens."""
    async with asyncio.timeout(20):
        while True:
            try:
                client, _ = await connect(url)
            except QueueUnavailable as error:
                if "refused" not in str(error).lower() or "111" not in str(error):
                    raise
                await asyncio.sleep(0.05)
            else:
                await disconnect(client)
                return


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("user: ann, password: hunter2", "ann:hunter2@", "ann:guessed@"),
        ("token: hunter2", "hunter2@", "guessed@"),
    ],
)
async def test_a_password_and_a_token(starts: Starts, rule: str, right: str, wrong: str) -> None:
    port = starts(f"authorization {{ {rule} }}")
    await let_in(f"nats://{right}127.0.0.1:{port}")
    for stranger in (wrong, ""):
        with pytest.raises(QueueUnavailable) as refused:
            await let_in(f"nats://{stranger}127.0.0.1:{port}")
        assert "guessed" not in str(refused.value)


async def test_tls_with_an_own_authority_and_certificates_of_clients(
    starts: Starts, tmp_path: Path
) -> None:
    ours, foreign = trustme.CA(), trustme.CA()
    names: dict[str, Path] = {}
    for name, blob in {
        "ca": ours.cert_pem,
        "foreign": foreign.cert_pem,
        "server": (server := ours.issue_cert("127.0.0.1")).private_key_and_cert_chain_pem,
        "us": ours.issue_cert("us@example.org").private_key_and_cert_chain_pem,
        "stranger": foreign.issue_cert("us@example.org").private_key_and_cert_chain_pem,
    }.items():
        names[name] = tmp_path / f"{name}.pem"
        blob.write_to_path(str(names[name]))
    assert server is not None
    port = starts(
        f'tls {{ cert_file: "{names["server"]}", key_file: "{names["server"]}",'
        f' ca_file: "{names["ca"]}", verify: true }}'
    )
    url = f"tls://127.0.0.1:{port}"
    await let_in(f"{url}?ca={names['ca']}&cert={names['us']}")
    for options in (
        f"?ca={names['ca']}",
        f"?ca={names['ca']}&cert={names['stranger']}",
        f"?ca={names['foreign']}&cert={names['us']}",
    ):
        with pytest.raises(QueueUnavailable):
            await connect(f"{url}{options}", connect_timeout_s=0.5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("?verify=no", "has no option 'verify'"),
        ("?ca=/nowhere.pem", "ca=/nowhere.pem"),
        ("?key=/nowhere.pem", "no 'cert'"),
    ],
)
async def test_options_that_cannot_be_are_refused(options: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        await connect(f"tls://127.0.0.1:4222{options}")
