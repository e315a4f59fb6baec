"""Settings: what to connect to, read once, and the only place that looks at the environment.

An explicit argument comes first, then the environment, then the embedded servers that ``horolog
dev`` keeps in ``HOROLOG_HOME``. Nothing here connects; a password is never part of a message.
"""

import getpass
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from horolog.application.several_logs.place import MAX_LOGS, LogPlace
from horolog.domain.errors import InvalidSetting, QueueUnavailable, StoreUnavailable
from horolog.domain.text import storable

if TYPE_CHECKING:
    from horolog.infrastructure.privacy.master_keys import MasterKeys

DEFAULT_HOME: Final = ".horolog"
DEFAULT_NAMESPACE: Final = "horolog"
MAX_ACTOR: Final = 256

_NAMESPACE = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_POSTGRES_OWN = re.compile(r"pg_.*|information_schema")
_POSTGRES_SCHEMES = ("postgresql", "postgres")
_NATS_SCHEMES = ("nats", "tls", "ws", "wss")

Source = Literal["argument", "environment"]


@dataclass(frozen=True)
class Settings:
    """What a process connects to, and as whom it acts.

    ``given_database_url`` and ``given_nats_url`` are what was stated; ``database_url()`` and
    ``nats_url()`` also look for embedded servers. ``home`` is where those keep their data.
    ``namespace`` is a Postgres schema and a NATS subject prefix. ``actor`` is who the events say
    did it. ``given_master_keys`` and ``master_key_file`` lead to what encrypts the keys of
    subjects; both are read when one is first needed.

    ``given_database_url`` may hold several URLs with white space between them: the namespace's
    logs, in their order. ``log`` chooses one of them, by its number from 0.
    """

    given_database_url: str | None
    given_nats_url: str | None
    home: Path
    namespace: str
    actor: str
    given_master_keys: str | None = field(default=None, repr=False)
    master_key_file: Path | None = None
    log: int | None = None

    @classmethod
    def read(
        cls,
        database_url: str | None = None,
        *,
        nats_url: str | None = None,
        home: str | os.PathLike[str] | None = None,
        namespace: str | None = None,
        actor: str | None = None,
        log: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> "Settings":
        """The settings of this process; an empty variable counts as absent.

        Raises ``InvalidSetting``, which names the setting, for what cannot be used.
        """
        env = os.environ if environment is None else environment
        stated = _postgres(database_url or env.get("HOROLOG_DATABASE_URL") or None)
        return cls(
            stated,
            _nats(nats_url or env.get("HOROLOG_NATS_URL") or None),
            Path(home or env.get("HOROLOG_HOME") or DEFAULT_HOME).expanduser(),
            _namespace(namespace or env.get("HOROLOG_NAMESPACE") or DEFAULT_NAMESPACE),
            storable(actor or _user_at_host(), MAX_ACTOR),
            env.get("HOROLOG_MASTER_KEY") or None,
            Path(file).expanduser() if (file := env.get("HOROLOG_MASTER_KEY_FILE")) else None,
            _log(env.get("HOROLOG_LOG") if log is None else log, len(_urls(stated)) or 1),
        )

    def __repr__(self) -> str:
        return (
            f"Settings(database_url={_shown(self.given_database_url)},"
            f" nats_url={_shown(self.given_nats_url)}, home={str(self.home)!r},"
            f" namespace={self.namespace!r}, actor={self.actor!r})"
        )

    def master_keys(self) -> "MasterKeys":
        """What encrypts the keys of subjects: of both settings, the environment's first.

        None of it is no error before something needs it. Raises ``InvalidSetting`` for what is no
        master key and for a file that cannot be read.
        """
        from horolog.infrastructure.privacy.master_keys import MasterKeys

        stated = self.given_master_keys or ""
        if self.master_key_file is not None:
            try:
                stated = f"{stated}\n{self.master_key_file.read_text()}"
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidSetting(
                    f"HOROLOG_MASTER_KEY_FILE={self.master_key_file}: it cannot be read:"
                    f" {type(error).__name__}"
                ) from None
        return MasterKeys.read(stated)

    @property
    def place(self) -> LogPlace:
        """Which log :meth:`database_url` leads to, of how many."""
        return LogPlace(self.log or 0, max(1, len(_urls(self.given_database_url))))

    def each_log(self) -> "list[Settings]":
        """These settings for every log that they choose: one of them, or all."""
        if self.log is not None:
            return [self]
        return [replace(self, log=number) for number in range(self.place.logs)]

    def all_database_urls(self) -> str:
        """All that were stated, or the embedded one: for another process. As :meth:`database_url`
        raises."""
        return self.given_database_url or self.database_url()

    def database_url(self) -> str:
        """The Postgres that was stated, or the embedded one of the home if it runs.

        Raises ``StoreUnavailable``, which says what to do, where there is neither; and
        ``InvalidSetting`` where several logs were stated and none of them is chosen: whoever asks
        here can work with one log.
        """
        urls = _urls(self.given_database_url)
        if len(urls) > 1 and self.log is None:
            raise InvalidSetting(
                f"this works on one log, and HOROLOG_DATABASE_URL names {len(urls)}: choose one"
                f" with --log N or HOROLOG_LOG, from 0 to {len(urls) - 1}"
            )
        if urls:
            return urls[self.log or 0]
        found = self._embedded_url("database_url")
        if found is None:
            raise StoreUnavailable(
                f"there is no Postgres to connect to: HOROLOG_DATABASE_URL is not set, and no"
                f" embedded server runs in {self.home}: run `horolog dev`, or set"
                " HOROLOG_DATABASE_URL to postgresql://user@host:5432/database"
            )
        return found

    def nats_url(self) -> str:
        """The NATS that was stated, or the embedded one of the home if it runs.

        Raises ``QueueUnavailable``, which says what to do, where there is neither.
        """
        if self.given_nats_url is not None:
            return self.given_nats_url
        found = self._embedded_url("nats_url")
        if found is None:
            raise QueueUnavailable(
                f"there is no NATS to connect to: HOROLOG_NATS_URL is not set, and no embedded"
                f" server runs in {self.home}: run `horolog dev`, or set HOROLOG_NATS_URL to"
                " nats://host:4222"
            )
        return found

    def _embedded_url(self, which: Literal["database_url", "nats_url"]) -> str | None:
        from horolog.infrastructure.embedded import EmbeddedServers

        found = EmbeddedServers(self.home).find()
        return None if found is None else str(getattr(found, which))


def web_environment() -> dict[str, str]:
    """What the environment says of the web server: the variables HOROLOG_WEB_…"""
    return {name: value for name, value in os.environ.items() if name.startswith("HOROLOG_WEB_")}


def _postgres(stated: str | None) -> str | None:
    """The URL, or several; or the keywords and values that libpq takes as well (``host=…
    dbname=…``)."""
    urls = _urls(stated)
    if len(urls) > MAX_LOGS:
        raise InvalidSetting(
            f"HOROLOG_DATABASE_URL names {len(urls)} logs: a namespace has from 1 to {MAX_LOGS}"
        )
    for number, url in enumerate(urls):
        if "=" in url and "://" not in url:
            continue
        _check_scheme(
            "HOROLOG_DATABASE_URL", url, _POSTGRES_SCHEMES, "postgresql://user@host:5432/db"
        )
        if url in urls[:number]:
            raise InvalidSetting(
                f"HOROLOG_DATABASE_URL names {without_password(url)!r} twice: each log of a"
                " namespace is a database of its own"
            )
    return stated


def _urls(stated: str | None) -> list[str]:
    """The URLs, which white space divides; libpq's keywords and values are one."""
    if not stated:
        return []
    parts = stated.split()
    return parts if all("://" in part.partition("=")[0] for part in parts) else [stated]


def _log(stated: str | int | None, logs: int) -> int | None:
    """The number of the one log that is meant; ``None``: all of them."""
    if stated is None or stated == "":
        return None
    try:
        log = int(stated)
    except ValueError:
        log = -1
    if not 0 <= log < logs:
        raise InvalidSetting(
            f"HOROLOG_LOG={stated!r}: HOROLOG_DATABASE_URL names {logs} of the namespace's logs, so"
            f" it is a number from 0 to {logs - 1}"
        )
    return log


def _nats(urls: str | None) -> str | None:
    """One URL, or several of one cluster with commas between them."""
    for url in (urls or "").split(",") if urls else ():
        _check_scheme("HOROLOG_NATS_URL", url.strip(), _NATS_SCHEMES, "nats://host:4222")
    return urls


def _check_scheme(setting: str, url: str, schemes: tuple[str, ...], example: str) -> None:
    try:
        parts = urlsplit(url)
        if "," not in parts.netloc:  # libpq takes several hosts with commas between them
            _ = parts.port  # raises where it is no number
    except ValueError as error:
        why = str(error).partition("'")[0].strip()  # what it quotes may be a part of a password
        raise InvalidSetting(
            f"{setting}={without_password(url)!r} cannot be read ({why}): it looks like {example},"
            " with % # / ? @ of a password written as %25 %23 %2F %3F %40"
        ) from None
    if parts.scheme not in schemes:
        raise InvalidSetting(
            f"{setting}={without_password(url)!r} cannot be used: it begins with"
            f" {schemes[0]}:// and looks like {example}"
        )


def without_password(url: str) -> str:
    """The URL as it may be shown: what stands between ``:`` and ``@`` is hidden, and all before
    ``@`` where that may be a token, or where a part of it is missing."""
    shown = re.sub(r"(//[^/@:]*):.*@", r"\1:***@", url, flags=re.DOTALL)
    if shown == url and not url.startswith(tuple(f"{name}://" for name in _POSTGRES_SCHEMES)):
        shown = re.sub(r"^(\w+://)?.*@", r"\1***@", url, flags=re.DOTALL)
    quoted = r"'(?:[^'\\]|\\.)*'?"
    return re.sub(rf"(?i)(password\s*=\s*)(?:{quoted}|[^&\s]+)", r"\1***", shown)


def _shown(url: str | None) -> str:
    return "None" if url is None else repr(without_password(url))


def _namespace(namespace: str) -> str:
    if not _NAMESPACE.fullmatch(namespace):
        raise InvalidSetting(
            f"HOROLOG_NAMESPACE={namespace!r} cannot be used: it takes lower-case letters, digits"
            " and _, begins with a letter or _, and has at most 40 characters"
        )
    if _POSTGRES_OWN.fullmatch(namespace):
        raise InvalidSetting(
            f"HOROLOG_NAMESPACE={namespace!r} cannot be used: it is a Postgres schema too, and"
            " Postgres keeps pg_… and information_schema for itself"
        )
    return namespace


def _user_at_host() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
