"""A worker whose handlers use Django's models: connections that went stale are not used again."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from horolog.application.worker.handlers import Handler
from horolog.interface.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")


class DjangoWorker(Worker):
    """As :class:`Worker`. Before and after each run, Django closes the connections of that thread
    that are broken or older than ``CONN_MAX_AGE``, as it does around each request."""

    def handles(
        self,
        name: str,
        *,
        transactional: bool = False,
        concurrency: int | None = None,
        process: bool = False,
    ) -> Callable[[Callable[P, R]], Handler[P, R]]:
        register = super().handles(
            name, transactional=transactional, concurrency=concurrency, process=process
        )

        def kept(function: Callable[P, R]) -> Handler[P, R]:
            inner = function.function if isinstance(function, Handler) else function
            # A process of its own makes connections of its own.
            return register(inner if process else _fresh(inner))

        return kept


def _fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    from django.db import close_old_connections

    if inspect.iscoroutinefunction(function):
        # Its queries run in threads of Django's own, which sees to them (sync_to_async).
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return call
