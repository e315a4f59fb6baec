"""A connection to NATS, and what its failures mean to us.

Once connected, the client reconnects for ever by itself. The first connection is bounded: a wrong
address or password is told at once and not waited out. A server that later refuses us (its password
was changed) closes the client for good: whoever holds one looks at ``is_closed`` and connects anew.
Drivers' exceptions are translated here and nowhere else; no message shows a password.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext

from horolog.domain.errors import InvalidSetting, QueueUnavailable
from horolog.infrastructure.nats.url_options import without_options

SCHEMES = ("nats", "tls", "ws", "wss")

RECONNECT_WAIT_S = 0.25
"""Between two attempts at the same server: shorter is busier, longer is later back."""


async def connect(
    url: str,
    *,
    name: str = "horolog",
    connect_timeout_s: float = 5.0,
    request_timeout_s: float = 5.0,
    silence_s: float = 30.0,
    reconnected: Callable[[], Awaitable[None]] | None = None,
    inbox: str = "_INBOX",
) -> tuple[Client, JetStreamContext]:
    """A connected client and its JetStream, seen to answer.

    ``url`` is one URL, or several separated by commas; its options are those of
    :mod:`horolog.infrastructure.nats.url_options`. A server that is silent for ``silence_s`` is
    taken for gone. ``reconnected`` is called after the connection was lost and made again.
    ``inbox`` is what the subjects of answers to us begin with
    (:mod:`horolog.infrastructure.nats.permissions`). Raises
    ``InvalidSetting`` for a URL that cannot be one, and ``QueueUnavailable`` where no server can be
    reached, lets us in and has JetStream.
    """
    stated = without_options(checked_urls(url))
    servers = stated.urls
    client = Client()
    noted: list[Exception] = []

    async def note(error: Exception) -> None:
        noted.append(error)

    async def on_reconnect() -> None:
        if reconnected is not None:
            await reconnected()

    try:
        # A server that hangs up in the middle of a handshake has the client try without end.
        async with asyncio.timeout(connect_timeout_s * (len(servers) + 1)):
            await client.connect(
                servers=servers,
                tls=stated.tls,
                **stated.credentials,
                name=name,
                inbox_prefix=inbox,
                error_cb=note,
                reconnected_cb=on_reconnect,
                connect_timeout=connect_timeout_s,  # pyright: ignore[reportArgumentType] - seconds
                reconnect_time_wait=RECONNECT_WAIT_S,  # pyright: ignore[reportArgumentType] - seconds
                max_reconnect_attempts=1,
                # A peer that vanished without a word is noticed at the third of these.
                ping_interval=silence_s / 3,  # pyright: ignore[reportArgumentType] - seconds
                max_outstanding_pings=2,
                flush_timeout=request_timeout_s,
            )
    except (nats.errors.Error, OSError, TimeoutError) as error:
        await disconnect(client)
        raise QueueUnavailable(
            f"NATS cannot be reached at {_shown(servers)}: {_reason(noted or [error])}"
        ) from error
    # The first connection is bounded; from here on it is made again for ever.
    client.options["max_reconnect_attempts"] = -1
    jetstream = client.jetstream(timeout=request_timeout_s)  # pyright: ignore[reportUnknownMemberType]
    try:
        await _check_jetstream(jetstream, servers)
    except QueueUnavailable:
        await disconnect(client)
        raise
    return client, jetstream


def _reason(errors: Sequence[BaseException]) -> str:
    """Of what several attempts came to, a server's own words rather than the network's."""
    for error in errors:
        if isinstance(error, nats.errors.Error):
            return one_line(error)
    if isinstance(errors[-1], ConnectionResetError):
        # What a server says before it hangs up is lost where it hangs up on unread bytes.
        return f"{one_line(errors[-1])} (it may have refused the user, the password or plain text)"
    return one_line(errors[-1])


async def disconnect(client: Client) -> None:
    """Closes a connection, in whatever state it is; its last words may be lost."""
    try:
        await client.close()
    except (nats.errors.Error, OSError, TimeoutError, RuntimeError):
        # The server went away while the client had something left to say (RuntimeError: uvloop's
        # word for that). It gave up in the middle of its closing, and takes itself for closed; now
        # that there is nothing left, it gets on.
        client._status = Client.DISCONNECTED  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        await client.close()


def checked_urls(url: str) -> list[str]:
    """The servers of a URL, or ``InvalidSetting``."""
    servers = [part.strip() for part in url.split(",") if part.strip()]
    for server in servers or [""]:
        try:
            parts = urlsplit(server)
            valid = parts.scheme in SCHEMES and parts.hostname and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise InvalidSetting(
                f"the NATS URL {_shown([server])!r} cannot be used:"
                " it looks like nats://user:password@host:4222"
            )
    return servers


@contextmanager
def translated(doing: str) -> Generator[None]:
    """Turns the client's exceptions into ``QueueUnavailable``; ``doing`` completes the sentence."""
    try:
        yield
    except (nats.errors.Error, OSError, TimeoutError, json.JSONDecodeError) as error:
        what = "refuses" if isinstance(error, nats.js.errors.APIError) else "is away while"
        raise QueueUnavailable(f"NATS {what} {doing}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


async def _check_jetstream(jetstream: JetStreamContext, servers: list[str]) -> None:
    try:
        await jetstream.account_info()
    except nats.js.errors.APIError as error:
        raise QueueUnavailable(
            f"NATS at {_shown(servers)} has no JetStream for us ({one_line(error)}):"
            " start the server with `nats-server --jetstream`, or enable it for this account"
        ) from error
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise QueueUnavailable(
            f"JetStream does not answer at {_shown(servers)}: {one_line(error)}"
        ) from error


def _shown(servers: list[str]) -> str:
    """The servers without what is secret."""
    return ", ".join(server.rpartition("@")[2] for server in servers)
