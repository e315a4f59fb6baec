"""A NATS server that lets in whom it knows, over TLS with an authority of its own."""

import asyncio
import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.infrastructure.nats.conftest import Starts

from horolog.domain.errors import InvalidSetting, QueueUnavailable
from horolog.infrastructure.nats.connection import connect, disconnect


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
        ("?creds=/nowhere.creds", "creds=/nowhere.creds"),
        ("?creds=a&nkey=b", "twice who we are: creds and nkey"),
        ("?passfile=/dev/null", "it is empty"),
    ],
)
async def test_options_that_cannot_be_are_refused(options: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        await connect(f"tls://127.0.0.1:4222{options}")


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


async def refuses(url: str, *secrets: str) -> None:
    with pytest.raises(QueueUnavailable) as refused:
        await let_in(url)
    for secret in secrets:
        assert secret not in str(refused.value)


async def test_a_password_and_a_token_from_files(starts: Starts, tmp_path: Path) -> None:
    right = written(tmp_path, "right", "hunter2-canary\n")
    wrong = written(tmp_path, "wrong", "guessed-canary\n")
    port = starts("authorization { user: ann, password: hunter2-canary }")
    await let_in(f"nats://ann@127.0.0.1:{port}?passfile={right}")
    await refuses(f"nats://ann@127.0.0.1:{port}?passfile={wrong}", "canary")
    with pytest.raises(InvalidSetting, match="no user"):
        await connect(f"nats://127.0.0.1:{port}?passfile={right}")
    port = starts("authorization { token: hunter2-canary }")
    await let_in(f"nats://127.0.0.1:{port}?tokenfile={right}")
    await refuses(f"nats://127.0.0.1:{port}?tokenfile={wrong}", "canary")


class Key:
    """A pair of keys as NATS writes them; ``says`` is a JWT that it has signed."""

    def __init__(self, kind: str) -> None:
        nkeys = pytest.importorskip("nkeys", reason="the extra `nkeys` is not installed")
        prefix = {"operator": 14 << 3, "account": 0, "user": 20 << 3}[kind]
        self.seed: str = nkeys.encode_seed(os.urandom(32), prefix).decode()
        self._pair: Any = nkeys.from_seed(bytearray(self.seed.encode()))
        self.public: str = self._pair.public_key.decode()

    def says(self, subject: str, **nats: Any) -> str:
        claims = {
            "jti": os.urandom(16).hex(),
            "iat": int(time.time()),
            "iss": self.public,
            "name": "test",
            "sub": subject,
            "nats": {"version": 2, **nats},
        }
        header = {"typ": "JWT", "alg": "ed25519-nkey"}
        signed = b".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
        return (signed + b"." + _encoded(self._pair.sign(signed))).decode()


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


async def test_an_nkey_from_a_file(starts: Starts, tmp_path: Path) -> None:
    ours, stranger = Key("user"), Key("user")
    port = starts(f"authorization {{ users: [ {{ nkey: {ours.public} }} ] }}")
    file = written(tmp_path, "us.nk", f"{ours.seed}\n")
    await let_in(f"nats://127.0.0.1:{port}?nkey={file}")
    file = written(tmp_path, "eve.nk", stranger.seed)
    await refuses(f"nats://127.0.0.1:{port}?nkey={file}", stranger.seed)
    await refuses(f"nats://127.0.0.1:{port}")
    for odd in (ours.public, "not one"):
        with pytest.raises(InvalidSetting, match="no seed of a user") as refused:
            await connect(f"nats://127.0.0.1:{port}?nkey={written(tmp_path, 'odd', odd)}")
        assert odd not in str(refused.value)


async def test_a_jwt_from_a_credentials_file(starts: Starts, tmp_path: Path) -> None:
    operator, account, system = Key("operator"), Key("account"), Key("account")
    user, eve = Key("user"), Key("user")
    everything = dict.fromkeys(
        ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage",
         "disk_storage", "streams", "consumer"),
        -1,
    )  # fmt: skip
    trusted = operator.says(operator.public, type="operator")
    known = {
        one.public: operator.says(
            one.public,
            type="account",
            limits={**everything, "wildcards": True} if one is account else {},
        )
        for one in (account, system)
    }
    preloaded = ", ".join(f"{public}: {said}" for public, said in known.items())
    port = starts(
        f"operator: {trusted}\nresolver: MEMORY\nsystem_account: {system.public}\n"
        f"resolver_preload: {{ {preloaded} }}"
    )

    def credentials(name: str, key: Key, signer: Key) -> Path:
        said = signer.says(key.public, type="user", subs=-1, data=-1, payload=-1)
        return written(
            tmp_path,
            name,
            f"-----BEGIN NATS USER JWT-----\n{said}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{key.seed}\n------END USER NKEY SEED------\n",
        )

    await let_in(f"nats://127.0.0.1:{port}?creds={credentials('us.creds', user, account)}")
    file = credentials("eve.creds", eve, eve)
    await refuses(f"nats://127.0.0.1:{port}?creds={file}", eve.seed)
    for odd in ("", "no credentials", file.read_text()[:60]):
        with pytest.raises(InvalidSetting, match="creds="):
            await connect(f"nats://127.0.0.1:{port}?creds={written(tmp_path, 'odd', odd)}")
