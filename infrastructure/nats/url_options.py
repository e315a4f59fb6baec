"""What a NATS URL says beside the server: whom to trust, and who we are.

    tls://nats.example.org:4222?ca=/etc/nats/ca.pem&cert=/etc/nats/us.pem&key=/etc/nats/us.key

As libpq has it in its URLs: files are named, and no secret stands in the URL. Without ``ca`` the
system's authorities are trusted. A password or a token is part of the URL (``user:password@``,
``token@``), and never of a message.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from horolog.domain.errors import InvalidSetting

OPTIONS: Final = ("ca", "cert", "key")


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a URL without its options; ``tls`` where the options speak of it."""

    urls: list[str]
    tls: ssl.SSLContext | None


def without_options(servers: Sequence[str]) -> Servers:
    """Takes the options out of the URLs; all servers share them.

    Raises ``InvalidSetting``, which names the option, for one that there is not and for a file that
    cannot be used.
    """
    found: dict[str, str] = {}
    urls: list[str] = []
    for server in servers:
        parts = urlsplit(server)
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name not in OPTIONS:
                raise InvalidSetting(
                    f"the NATS URL has no option {name!r}: it takes {', '.join(OPTIONS)}"
                )
            found[name] = value
        urls.append(urlunsplit(parts._replace(query="")))
    return Servers(urls, _context(found) if found else None)


def _context(options: dict[str, str]) -> ssl.SSLContext:
    if ("key" in options) and "cert" not in options:
        raise InvalidSetting("the NATS URL has the option 'key' and no 'cert': give both")
    name = "ca"
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        if "cert" in options:
            name = "cert"
            context.load_cert_chain(options["cert"], options.get("key"))
    except (OSError, ssl.SSLError) as error:
        raise InvalidSetting(
            f"the NATS URL has {name}={options.get(name)}, which cannot be used:"
            f" {type(error).__name__}"
        ) from None
    return context
