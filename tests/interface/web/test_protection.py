"""What a stranger, another site's page, or a forgotten option cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.interface.web.conftest import ACCOUNTS, Browser, every

from horolog.domain.errors import InvalidSetting
from horolog.interface.cli.main import run
from horolog.interface.web.accounts import by_name_and_secret, by_secret, read_accounts
from horolog.interface.web.settings import WebSettings

BODY = {"name": "report", "schedule": {"every": 60}}


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.nip.io"])
def test_another_name_for_this_server_is_refused(quiet_web: Browser, host: str) -> None:
    for path in ("/", "/api/v1/jobs", "/static/app.css"):
        assert quiet_web.get(path, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_sites_page_changes_nothing(quiet_web: Browser, headers: dict[str, str]) -> None:
    body = BODY | {"key": "of another site"}
    assert quiet_web.post("/api/v1/jobs", json=body, headers=headers).status_code == 403
    found = quiet_web.get("/api/v1/job", params={"key": "of another site"})
    assert found.status_code == 404


def test_a_page_of_ours_may(quiet_web: Browser) -> None:
    headers = {"Origin": quiet_web.address, "Sec-Fetch-Site": "same-origin"}
    assert quiet_web.post("/api/v1/jobs", json=BODY, headers=headers).status_code == 201


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_form_of_another_site_is_no_body_of_the_api(quiet_web: Browser, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    answer = quiet_web.post("/api/v1/jobs", content=b'{"name": "a"}', headers=headers)
    assert answer.status_code == 415


def test_a_body_that_is_too_large_is_refused_however_it_is_sent(quiet_web: Browser) -> None:
    job = every(quiet_web)
    path, json = f"/api/v1/jobs/{job['id']}", {"Content-Type": "application/json"}
    large = b'{"payload": {"a": "' + b"x" * (9 * 1024 * 1024) + b'"}}'
    assert quiet_web.patch(path, content=large, headers=json).status_code == 413
    pieces = (large[at : at + 65_536] for at in range(0, len(large), 65_536))
    assert quiet_web.patch(path, content=pieces, headers=json).status_code == 413
    assert quiet_web.patch(path, content=b"{" * 100_000, headers=json).status_code in (400, 422)


def test_every_answer_forbids_what_is_not_ours(quiet_web: Browser) -> None:
    for path in ("/", "/api/v1/jobs", "/static/app.css", "/nothing"):
        headers = quiet_web.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers
    assert quiet_web.get("/").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"host": "0.0.0.0"}, "without accounts"),
        ({"host": "::"}, "without accounts"),
        ({"host": "192.0.2.1", "accounts": ACCOUNTS}, "without TLS"),
        ({"host": "0.0.0.0", "accounts": ACCOUNTS, "behind_proxy": True}, "under no name"),
        ({"behind_proxy": True}, "without accounts"),
        ({"tls_key": Path("/nowhere")}, "both a certificate and its key"),
        ({"port": 70_000}, "port"),
        ({"secret": "short"}, "secret"),
    ],
)
def test_off_loopback_it_starts_only_when_it_is_safe(stated: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        WebSettings.read({}, **stated)


def test_a_network_is_served_with_accounts_a_name_and_tls() -> None:
    settings = WebSettings.read(
        {
            "HOROLOG_WEB_HOST": "0.0.0.0",
            "HOROLOG_WEB_TOKEN": "a-long-enough-secret",
            "HOROLOG_WEB_NAMES": "Jobs.Example.org",
            "HOROLOG_WEB_BEHIND_PROXY": "true",
        }
    )
    assert settings.known_names == {"jobs.example.org"}
    assert settings.secure
    assert "a-long-enough-secret" not in repr(settings)


def test_accounts_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "accounts"
    digest = ACCOUNTS[1].digest.hex()
    ann, bob = "write ann the-secret-of-ann  # her desk", f"read bob sha256:{digest}"
    path.write_text(f"# who may come\n{ann}\n\n{bob}\n")
    accounts = read_accounts(path)
    assert accounts == ACCOUNTS
    found = by_secret(accounts, "the-secret-of-bob")
    assert found is not None
    assert (found.name, found.role) == ("bob", "read")
    assert by_secret(accounts, f"sha256:{digest}") is None
    assert by_name_and_secret(accounts, "ann", "the-secret-of-bob") is None
    assert by_name_and_secret(accounts, "bob", "the-secret-of-bob") == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no account"),
        ("write ann", "2 words"),
        ("admin ann the-secret-of-ann", "role 'admin'"),
        ("write ann short", "shorter than 16"),
        ("read a the-secret-of-ann\nread a the-secret-of-bob", "line 2"),
    ],
)
def test_a_file_of_accounts_that_is_wrong_names_the_line_and_no_secret(
    tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "accounts"
    path.write_text(text)
    with pytest.raises(InvalidSetting, match=says) as refused:
        read_accounts(path)
    assert "the-secret" not in str(refused.value)
    with pytest.raises(InvalidSetting, match="cannot be read"):
        read_accounts(tmp_path / "absent")


def test_the_command_line_refuses_to_be_open_to_a_network(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["web", "--host", "0.0.0.0"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("horolog: the web server would listen on 0.0.0.0 without accounts")
    assert said.err.count("\n") == 1
