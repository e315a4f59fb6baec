"""NATS permissions: what each kind of process publishes and hears, and no more.

A client uses Postgres alone and has no user here. Only a scanner fills the ready queue and keeps
its stream; a worker takes and acknowledges; who audits looks. Each hears its own answers only: with
one prefix for all, whoever may hear answers would hear every message that a worker is given.
"""

from typing import Final, Literal

Kind = Literal["scanner", "worker", "auditor"]

KINDS: Final[tuple[Kind, ...]] = ("scanner", "worker", "auditor")

# $JS.API.INFO says whether there is JetStream for us. The rest is of the one stream.
_PUBLISHES: Final[dict[Kind, tuple[str, ...]]] = {
    "scanner": (
        "{namespace}.ready.*",
        "$JS.API.INFO",
        "$JS.API.STREAM.CREATE.{stream}",
        "$JS.API.STREAM.UPDATE.{stream}",
        "$JS.API.STREAM.DELETE.{stream}",  # one whose files are gone is made anew
        "$JS.API.STREAM.INFO.{stream}",
        "$JS.API.STREAM.MSG.GET.{stream}",
        "$JS.API.CONSUMER.CREATE.{stream}.>",
        "$JS.API.CONSUMER.DURABLE.CREATE.{stream}.*",
        "$JS.API.CONSUMER.INFO.{stream}.*",
        "$JS.API.CONSUMER.LIST.{stream}",
    ),
    "worker": (
        "$JS.API.INFO",
        "$JS.API.CONSUMER.CREATE.{stream}.>",
        "$JS.API.CONSUMER.DURABLE.CREATE.{stream}.*",
        "$JS.API.CONSUMER.INFO.{stream}.*",
        "$JS.API.CONSUMER.LIST.{stream}",
        "$JS.API.CONSUMER.MSG.NEXT.{stream}.*",
        "$JS.ACK.{stream}.>",
    ),
    "auditor": (
        "$JS.API.INFO",
        "$JS.API.STREAM.INFO.{stream}",
        "$JS.API.CONSUMER.LIST.{stream}",
    ),
}

_HEARS: Final[dict[Kind, tuple[str, ...]]] = {
    "scanner": (),
    "worker": (
        "$JS.EVENT.ADVISORY.CONSUMER.CREATED.{stream}.>",
        "$JS.EVENT.ADVISORY.CONSUMER.DELETED.{stream}.>",
    ),
    "auditor": (),
}


def inbox(namespace: str, kind: Kind) -> str:
    """What the subjects of answers to a process of this kind begin with."""
    return f"_INBOX.{namespace}.{kind}"


def publishes(namespace: str, kind: Kind) -> list[str]:
    return [_of(namespace, subject) for subject in _PUBLISHES[kind]]


def hears(namespace: str, kind: Kind) -> list[str]:
    return [f"{inbox(namespace, kind)}.>", *(_of(namespace, one) for one in _HEARS[kind])]


def configuration(namespace: str, prefix: str, alerts: tuple[str, ...] = ()) -> str:
    """A piece of a server's configuration: a user for each kind. Its passwords come from the
    server's environment; a user may have an nkey or a JWT with the same permissions instead.

    ``alerts`` are the subjects that rules of alerts name: a scanner publishes those as well.
    """
    return "\n".join(
        [
            "authorization {",
            "  users = [",
            *(_user(namespace, prefix, kind, alerts) for kind in KINDS),
            "  ]",
            "}",
        ]
    )


def _user(namespace: str, prefix: str, kind: Kind, alerts: tuple[str, ...]) -> str:
    may_publish = publishes(namespace, kind) + list(alerts if kind == "scanner" else ())
    return (
        f"    {{ user: {prefix}_{kind}, password: ${f'{prefix}_{kind}_password'.upper()},\n"
        f"      permissions: {{\n"
        f"        publish: {{ allow: [{_quoted(may_publish)}] }}\n"
        f"        subscribe: {{ allow: [{_quoted(hears(namespace, kind))}] }} }} }}"
    )


def _quoted(subjects: list[str]) -> str:
    return ",\n          ".join(f'"{subject}"' for subject in subjects)


def _of(namespace: str, subject: str) -> str:
    return subject.format(namespace=namespace, stream=f"{namespace}_ready")
