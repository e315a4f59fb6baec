"""What the web server listens on, and what it demands of those who come over a network.

On loopback it may be open: whoever reaches it could run the command line as well. Anywhere else it
starts only with accounts and with TLS, its own or that of a proxy which is stated to be there. Else
a forgotten option would let a network cancel jobs.
"""

import secrets
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from horolog.domain.errors import InvalidSetting
from horolog.interface.web.accounts import Account, read_accounts

DEFAULT_PORT = 8480
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"", "0", "false", "no", "off"})


class WebSettings(BaseModel):
    """Read once, at the start."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    host: str = "127.0.0.1"
    """The address to listen on."""

    port: Annotated[int, Field(ge=0, le=65_535)] = DEFAULT_PORT
    """0 takes a free one, which is said at the start."""

    names: tuple[str, ...] = ()
    """What the server is called in a URL. A request for another name is refused: it may come from
    a page whose name was made to lead here."""

    accounts: tuple[Account, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None

    behind_proxy: bool = False
    """A proxy in front speaks TLS, and only it reaches this server."""

    read_only: bool = False
    """Nobody changes anything here, whatever their account says."""

    secret: Annotated[str, Field(min_length=32)] = Field(
        default_factory=lambda: secrets.token_urlsafe(32)
    )
    """Signs cookies and forms. Drawn at the start, unless stated: several servers behind one name
    need the same."""

    session_s: Annotated[float, Field(gt=60, le=30 * 86_400)] = 12 * 3600.0
    """How long a person stays logged in. Shorter: a stolen cookie is worth less. Longer: fewer
    logins."""

    @classmethod
    def read(cls, environment: Mapping[str, str], **stated: object) -> Self:
        """The settings; what is ``stated`` (and not ``None``) comes before the environment.

        Raises ``InvalidSetting``, which names the setting and never shows a secret.
        """
        values: dict[str, object] = {
            **_from_environment(environment),
            **{name: value for name, value in stated.items() if value is not None},
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            said = first["msg"].removeprefix("Value error, ")
            raise InvalidSetting(f"web {where}: {said}" if where else said) from None

    @property
    def on_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def secure(self) -> bool:
        """Whether browsers come by TLS."""
        return self.behind_proxy or self.tls_certificate is not None

    @property
    def known_names(self) -> frozenset[str]:
        """The names of the ``Host`` header, lower case and without the port."""
        given = {name.casefold() for name in self.names}
        return frozenset(given | set(LOOPBACK_NAMES) if self.on_loopback else given)

    @model_validator(mode="after")
    def _not_open_to_a_network(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("TLS needs both a certificate and its key")
        for path in (self.tls_certificate, self.tls_key):
            if path is not None and not path.is_file():
                raise ValueError(f"{path} is no file")
        if self.on_loopback and not self.behind_proxy:
            return self
        where = (
            f"the web server would listen on {self.host}"
            if not self.on_loopback
            else ("the web server would be reached through a proxy")
        )
        if not self.accounts:
            raise ValueError(
                f"{where} without accounts: give a file of them (--accounts, HOROLOG_WEB_ACCOUNTS)"
            )
        if not self.secure:
            raise ValueError(
                f"{where} without TLS: give --tls-certificate and --tls-key, or say --behind-proxy"
                " where a proxy speaks TLS"
            )
        if not self.names:
            raise ValueError(
                f"{where} under no name: say what it is called in its URL, such as"
                " --name horolog.example.org"
            )
        return self


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    """``HOROLOG_WEB_…``; an empty variable counts as absent."""
    given = {name: value for name, value in environment.items() if value}
    found: dict[str, object] = {}
    for variable, name in (
        ("HOROLOG_WEB_HOST", "host"),
        ("HOROLOG_WEB_PORT", "port"),
        ("HOROLOG_WEB_TLS_CERTIFICATE", "tls_certificate"),
        ("HOROLOG_WEB_TLS_KEY", "tls_key"),
        ("HOROLOG_WEB_SECRET", "secret"),
    ):
        if variable in given:
            found[name] = given[variable]
    if "HOROLOG_WEB_NAMES" in given:
        found["names"] = tuple(part.strip() for part in given["HOROLOG_WEB_NAMES"].split(","))
    for variable, name in (
        ("HOROLOG_WEB_BEHIND_PROXY", "behind_proxy"),
        ("HOROLOG_WEB_READ_ONLY", "read_only"),
    ):
        if variable in given:
            found[name] = _flag(variable, given[variable])
    accounts: tuple[Account, ...] = ()
    if "HOROLOG_WEB_ACCOUNTS" in given:
        accounts = read_accounts(Path(given["HOROLOG_WEB_ACCOUNTS"]))
    if "HOROLOG_WEB_TOKEN" in given:
        secret = given["HOROLOG_WEB_TOKEN"]
        accounts += (Account.of("write", "token", secret, where="HOROLOG_WEB_TOKEN"),)
    if accounts:
        found["accounts"] = accounts
    return found


def _flag(name: str, value: str) -> bool:
    if value.casefold() in _TRUE:
        return True
    if value.casefold() in _FALSE:
        return False
    raise InvalidSetting(f"{name}={value!r}: say true or false")
