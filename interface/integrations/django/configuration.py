"""What ``settings.HOROLOG`` says, and the same database as Django's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.postgres.conninfo import conninfo_of
from horolog.interface.settings import Settings

_KNOWN = frozenset({"DATABASE", "NAMESPACE", "ACTOR", "NATS_URL", "DATABASE_URL"})
_NAMES = {
    "NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port",
}  # fmt: skip
_LIBPQ = ("sslmode", "sslrootcert", "sslcert", "sslkey", "service", "passfile", "connect_timeout")


@dataclass(frozen=True, slots=True)
class Configuration:
    """``alias`` is the database whose transactions commands are part of."""

    alias: str
    settings: Settings


def configuration() -> Configuration:
    """Raises ``InvalidSetting`` for a setting that does not exist, and for another database than
    Postgres."""
    from django.conf import settings

    stated: Mapping[str, Any] = getattr(settings, "HOROLOG", {})
    if unknown := sorted(stated.keys() - _KNOWN):
        known = ", ".join(sorted(_KNOWN))
        raise InvalidSetting(f"HOROLOG[{unknown[0]!r}] is no setting; there are {known}")
    alias = stated.get("DATABASE", "default")
    url = stated.get("DATABASE_URL") or _conninfo(alias, settings.DATABASES)
    read = Settings.read(
        url,
        nats_url=stated.get("NATS_URL"),
        namespace=stated.get("NAMESPACE"),
        actor=stated.get("ACTOR"),
    )
    return Configuration(alias, read)


def _conninfo(alias: str, databases: Mapping[str, Mapping[str, Any]]) -> str:
    if alias not in databases:
        raise InvalidSetting(f"HOROLOG['DATABASE']={alias!r} is none of settings.DATABASES")
    stated = databases[alias]
    if "postg" not in str(stated.get("ENGINE")):
        raise InvalidSetting(
            f"the database {alias!r} is {stated.get('ENGINE')}: Horolog keeps its log in Postgres;"
            " name another one in HOROLOG['DATABASE'], or a HOROLOG['DATABASE_URL']"
        )
    options: Mapping[str, Any] = stated.get("OPTIONS", {})
    parts = {ours: stated[name] for name, ours in _NAMES.items() if stated.get(name)}
    parts |= {name: options[name] for name in _LIBPQ if options.get(name)}
    return conninfo_of(parts)
