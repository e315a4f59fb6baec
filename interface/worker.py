"""``Worker``: handlers registered by decorators, and a process that runs them.

worker = Worker(concurrency=50)

@worker.handles("invoices.bill")
async def bill(run: Run, card: Card, amount: int) -> dict: ...

if __name__ == "__main__":
    worker.run()                 # or: horolog worker module:worker
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from horolog.application.worker.handlers import Handlers
from horolog.application.worker.settings import WorkerSettings
from horolog.domain.errors import InvalidSetting
from horolog.interface.loading import load, wrong_kind
from horolog.interface.settings import Settings

if TYPE_CHECKING:
    import asyncio

    from horolog.interface.processes.monitor import Monitor


class Worker(Handlers):
    """What one worker process does, and how much of it at a time.

    ``concurrency`` is how many ``async def`` handlers run at once; ``threads`` how many ``def``
    handlers. ``queues`` is what it takes from (``None``: every queue, new ones too); as a mapping,
    ``{"billing": 5, "mail": None}``, it also says how many runs of a queue go on at once. Further
    settings are those of :class:`WorkerSettings`, by name; times are seconds. Raises
    ``InvalidSetting`` for what cannot be.
    """

    def __init__(
        self,
        concurrency: int = 100,
        *,
        queues: Sequence[str] | Mapping[str, int | None] | None = None,
        threads: int = 16,
        **settings: Any,
    ) -> None:
        super().__init__()
        if isinstance(queues, str):
            raise InvalidSetting(f"queues={queues!r} is one name: give a list, [{queues!r}]")
        self.queues = None if queues is None else list(queues)
        if isinstance(queues, Mapping):
            limits = {name: limit for name, limit in queues.items() if limit is not None}
            settings = {"queue_limits": limits} | settings
        try:
            self.settings = WorkerSettings(concurrency=concurrency, threads=threads, **settings)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or "settings"
            if first["type"] == "extra_forbidden":
                known = ", ".join(WorkerSettings.model_fields)
                raise InvalidSetting(
                    f"Worker: {name}: a worker has no such setting; it has {known}"
                ) from error
            raise InvalidSetting(f"Worker: {name}: {first['msg']}") from error

    def run(
        self,
        database_url: str | None = None,
        *,
        nats_url: str | None = None,
        namespace: str | None = None,
    ) -> None:
        """Works until SIGTERM or Ctrl-C, then drains; a second signal ends at once.

        What is not given comes from the environment (``HOROLOG_DATABASE_URL``,
        ``HOROLOG_NATS_URL``, ``HOROLOG_NAMESPACE``), or is the embedded pair of ``horolog dev``.
        Raises as :func:`run_worker` does. For a program's main thread.
        """
        from horolog.interface.processes.loop import run

        settings = Settings.read(database_url, nats_url=nats_url, namespace=namespace)
        run(run_until_signalled(self, settings))


async def run_until_signalled(
    worker: Worker, settings: Settings, monitor: "Monitor | None" = None
) -> None:
    """Runs the worker on the running loop until SIGTERM or SIGINT, for each log by itself: its
    concurrency and its threads are those for one log."""
    from horolog.interface.processes.each_log import serve_each_log
    from horolog.interface.processes.signals import stop_on_signals
    from horolog.interface.processes.worker import run_worker

    async def work(one: Settings, stop: "asyncio.Event") -> None:
        await run_worker(
            worker,
            database_url=one.database_url(),
            nats_url=one.nats_url(),
            namespace=one.namespace,
            stop=stop,
            monitor=monitor,
            masters=one.master_keys,
            place=one.place,
        )

    with stop_on_signals() as stop:
        await serve_each_log(settings, work, stop, monitor)


def load_worker(place: str) -> Worker:
    """The worker at ``"package.module:attribute"`` (``worker`` where no attribute is named).

    Modules of the working directory are found as well. Raises ``InvalidSetting`` where there is no
    such module or it holds no worker there; what the module itself raises comes out as it is.
    """
    name, found = load(place, "worker", "worker")
    if not isinstance(found, Worker):
        raise wrong_kind(name, found, "Worker")
    return found
