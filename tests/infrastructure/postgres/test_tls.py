"""Postgres over TLS: the server's certificate and name are checked, and ours is shown.

The Postgres of the wheels speaks no TLS; a front before it does, as a proxy or a cloud's gateway
would: it is libpq that checks, and it cannot tell the difference.
"""

import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import pytest
import trustme
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.postgres.database import Database

SSL_REQUEST = bytes.fromhex("0000000804d2162f")


class Front:
    """Takes TLS on loopback and passes on what is in it."""

    def __init__(self, conninfo: str, context: ssl.SSLContext) -> None:
        params = conninfo_to_dict(conninfo)
        self._target = f"{params['host']}/.s.PGSQL.{params['port']}"
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        self._open.append(plain)
        with closing(plain), suppress(OSError):
            if plain.recv(8) != SSL_REQUEST:
                return
            plain.sendall(b"S")
            with self._context.wrap_socket(plain, server_side=True) as client:
                server = socket.socket(socket.AF_UNIX)
                self._open += [client, server]
                server.connect(self._target)
                Thread(target=_pass_on, args=(server, client), daemon=True).start()
                _pass_on(client, server)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with closing(sink), suppress(OSError, ValueError):
        while data := source.recv(65536):
            sink.sendall(data)


Urls = Callable[..., str]


@pytest.fixture
def urls(database_url: str, tmp_path: Path) -> Generator[Urls]:
    """URLs through a front whose certificate is for `localhost`, and that asks for one of ours."""
    ours, foreign = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED
    ours.configure_trust(context)  # pyright: ignore[reportUnknownMemberType]
    certificate = ours.issue_cert("localhost")
    certificate.configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    files = {"ours": ours.cert_pem, "foreign": foreign.cert_pem}
    for name, authority in {"us": ours, "eve": foreign}.items():
        certificate = authority.issue_cert("us@example.org")
        files[f"{name}.crt"] = certificate.cert_chain_pems[0]
        files[f"{name}.key"] = certificate.private_key_pem
    for name, blob in files.items():
        blob.write_to_path(str(tmp_path / name))
        (tmp_path / name).chmod(0o600)
    front = Front(database_url, context)

    def url(authority: str = "ours", who: str = "us", host: str = "localhost") -> str:
        return make_conninfo(
            database_url,
            host=host,
            hostaddr="127.0.0.1",
            port=front.port,
            sslmode="verify-full",
            sslrootcert=str(tmp_path / authority),
            sslcert=str(tmp_path / f"{who}.crt"),
            sslkey=str(tmp_path / f"{who}.key"),
            gssencmode="disable",
        )

    yield url
    front.close()


def test_the_server_that_is_known_is_spoken_to_over_tls(urls: Urls) -> None:
    database = Database(urls(), "t")
    with database.session() as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchone() == (1,)
    database.close()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"authority": "foreign"}, "certificate verify failed"),
        ({"host": "example.org"}, "does not match host name"),
        ({"who": "eve"}, "alert|closed"),
    ],
)
def test_whoever_passes_for_somebody_is_refused(
    urls: Urls, wrong: dict[str, str], said: str
) -> None:
    database = Database(urls(**wrong), "t", connect_timeout_s=2)
    with pytest.raises(StoreUnavailable, match=said), database.session():
        pass
    database.close()


def test_a_server_without_tls_is_refused(database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(8)
                client.sendall(b"N")

        thread = Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        url = make_conninfo(
            database_url, host="127.0.0.1", port=port, sslmode="require", gssencmode="disable"
        )
        database = Database(url, "t", connect_timeout_s=2)
        with pytest.raises(StoreUnavailable, match="SSL"), database.session():
            pass
        thread.join()
        database.close()
