"""What a NATS URL says beside the server: whom to trust, and who we are.

    tls://nats.example.org:4222?ca=/etc/nats/ca.pem&cert=/etc/nats/us.pem&key=/etc/nats/us.key
    tls://nats.example.org:4222?creds=/etc/nats/us.creds        (a JWT and its key, as of nsc)
    tls://nats.example.org:4222?nkey=/etc/nats/us.nk            (a seed, S…)
    tls://us@nats.example.org:4222?passfile=/etc/nats/password  (or tokenfile=, without a user)

As libpq has it in its URLs: files are named, and no secret has to stand in the URL. Without ``ca``
the system's authorities are trusted. A password or a token may be part of the URL as well
(``user:password@``, ``token@``), and is never part of a message.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from horolog.domain.errors import InvalidSetting

OPTIONS: Final = ("ca", "cert", "key", "creds", "nkey", "passfile", "tokenfile")
_TLS: Final = frozenset({"ca", "cert", "key"})
_WHO: Final = ("creds", "nkey", "passfile", "tokenfile")


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a URL without its options; ``tls`` where the options speak of it, and
    ``credentials`` as arguments of the client."""

    urls: list[str]
    tls: ssl.SSLContext | None
    credentials: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)


def without_options(servers: Sequence[str]) -> Servers:
    """Takes the options out of the URLs; all servers share them.

    Raises ``InvalidSetting``, which names the option, for one that there is not and for a file that
    cannot be used.
    """
    found: dict[str, str] = {}
    urls: list[str] = []
    user = ""
    for server in servers:
        parts = urlsplit(server)
        user = user or unquote(parts.username or "")
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name not in OPTIONS:
                raise InvalidSetting(
                    f"the NATS URL has no option {name!r}: it takes {', '.join(OPTIONS)}"
                )
            found[name] = value
        urls.append(urlunsplit(parts._replace(query="")))
    return Servers(urls, _context(found) if _TLS & set(found) else None, _credentials(found, user))


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    if ("key" in options) and "cert" not in options:
        raise InvalidSetting("the NATS URL has the option 'key' and no 'cert': give both")
    name = "ca"
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        if "cert" in options:
            name = "cert"
            context.load_cert_chain(options["cert"], options.get("key"))
    except (OSError, ssl.SSLError) as error:
        raise _unusable(name, options, type(error).__name__) from None
    return context


def _credentials(options: Mapping[str, str], user: str) -> dict[str, Any]:
    """Who we are, from the one option that says so. Files are looked at here: the client would
    tell of a wrong one late, or never."""
    stated = [name for name in _WHO if name in options]
    if len(stated) > 1:
        raise InvalidSetting(f"the NATS URL says twice who we are: {' and '.join(stated)}")
    if not stated:
        return {}
    name = stated[0]
    said = _read(name, options)
    if name == "passfile":
        if not user:
            raise InvalidSetting("the NATS URL has the option 'passfile' and no user: user@host")
        return {"user": user, "password": said}
    if name == "tokenfile":
        return {"token": said}
    _check_keys(name, options, said)
    if name == "creds":
        return {"user_credentials": options["creds"]}
    return {"nkeys_seed_str": said}


def _check_keys(name: str, options: Mapping[str, str], said: str) -> None:
    """Raises unless there is a seed, with its JWT where it has to have one, and who can sign."""
    try:
        import nkeys  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise InvalidSetting(
            f"the NATS URL has the option {name!r}, which needs `pip install 'horolog[nkeys]'`"
        ) from None
    lines = [line.strip() for line in said.splitlines()]
    if name == "creds":
        marks = ("BEGIN NATS USER JWT", "BEGIN USER NKEY SEED")
        places = [n for mark in marks for n, line in enumerate(lines) if mark in line]
        if len(places) != len(marks) or max(places) + 1 >= len(lines):
            raise _unusable(name, options, "it does not hold a JWT and a seed, as nsc writes them")
        lines = [lines[places[1] + 1]]
    try:
        nkeys.from_seed(bytearray(lines[0].encode())).wipe()  # pyright: ignore[reportUnknownMemberType]
    except (nkeys.NkeysError, ValueError, IndexError):
        raise _unusable(name, options, "it holds no seed of a user") from None


def _read(name: str, options: Mapping[str, str]) -> str:
    try:
        said = Path(options[name]).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(name, options, type(error).__name__) from None
    if not said:
        raise _unusable(name, options, "it is empty")
    return said


def _unusable(name: str, options: Mapping[str, str], why: str) -> InvalidSetting:
    return InvalidSetting(
        f"the NATS URL has {name}={options.get(name)}, which cannot be used: {why}"
    )
