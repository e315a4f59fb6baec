"""Where a command goes: the options that every command has, and the client that they lead to.

An option comes before the environment, which only :mod:`horolog.interface.settings` reads.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click

from horolog.interface.cli.rendering import Output

if TYPE_CHECKING:
    from horolog.interface.scheduler import Scheduler
    from horolog.interface.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

LOOKED_AT: Final = 1000
"""Jobs whose keys are looked at for a hint or a completion."""

_OPTIONS = [
    click.option(
        "--database-url",
        metavar="URL",
        help="Postgres; several: logs.  [env: HOROLOG_DATABASE_URL]",
    ),
    click.option("--nats-url", metavar="URL", help="NATS.  [env: HOROLOG_NATS_URL]"),
    click.option("--home", metavar="DIR", help="Embedded servers.  [env: HOROLOG_HOME; .horolog]"),
    click.option("--namespace", metavar="NAME", help="[env: HOROLOG_NAMESPACE; horolog]"),
    click.option(
        "--log", type=int, metavar="N", help="One of several logs, from 0.  [env: HOROLOG_LOG]"
    ),
    click.option("--actor", metavar="WHO", help="Who the events say did it.  [default: user@host]"),
    click.option("--json", "as_json", is_flag=True, help="JSON instead of text."),
]


STATED: Final = ("database_url", "nats_url", "home", "namespace", "actor", "log")
"""The options that say where: their parameters, and the fields of :class:`Place`."""

reveal_option = click.option(
    "--reveal", is_flag=True, help="Show the data of subjects; needs the master key."
)
"""For commands whose answers may have some."""


@dataclass(frozen=True)
class Place:
    """What the options said; ``None`` where they did not."""

    database_url: str | None = None
    nats_url: str | None = None
    home: str | None = None
    namespace: str | None = None
    actor: str | None = None
    reveal: bool = False
    log: int | None = None

    def settings(self) -> "Settings":
        """Raises ``InvalidSetting``."""
        from horolog.interface.settings import Settings

        return Settings.read(
            self.database_url,
            nats_url=self.nats_url,
            home=self.home,
            namespace=self.namespace,
            actor=self.actor,
            log=self.log,
        )

    def arguments(self) -> list[str]:
        """The same place, as options for another `horolog` process."""
        options = {
            "--database-url": self.database_url,
            "--nats-url": self.nats_url,
            "--home": self.home,
            "--namespace": self.namespace,
            "--actor": self.actor,
            "--log": None if self.log is None else str(self.log),
        }
        return [part for name, value in options.items() if value for part in (name, value)]

    @contextmanager
    def scheduler(self) -> "Generator[Scheduler]":
        """A client of this place. Who names a job that is not there is told the nearest keys."""
        from horolog.domain.errors import UnknownJob
        from horolog.interface.scheduler import Scheduler

        with Scheduler(settings=self.settings(), reveal=self.reveal) as scheduler:
            try:
                yield scheduler
            except UnknownJob as error:
                near = _nearest_keys(scheduler)
                hint = f": did you mean {' or '.join(near)}?" if near else ""
                raise UnknownJob(f"{error}{hint}") from error


def _nearest_keys(scheduler: "Scheduler") -> list[str]:
    context = click.get_current_context(silent=True)
    named = None if context is None else context.params.get("job")
    if not isinstance(named, str):
        return []
    keys = [job.key for job in scheduler.jobs(limit=LOOKED_AT) if job.key is not None]
    return get_close_matches(named, keys, n=2)


def at_a_place(function: Callable[..., R]) -> Callable[..., R]:
    """Adds the options; the function gets a :class:`Place` and an :class:`Output` first."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> R:
        place = Place(
            **{name: options.pop(name) for name in STATED},
            reveal=options.pop("reveal", False),
        )
        output = Output(as_json=options.pop("as_json"))
        return function(place, output, *arguments, **options)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call
