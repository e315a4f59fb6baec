"""The scheduler of a Django project: within ``transaction.atomic`` a command is part of it."""

import os
from functools import wraps
from typing import Any

from horolog.interface.integrations.django.configuration import configuration
from horolog.interface.scheduler import Scheduler
from horolog.interface.settings import Settings

_WITHIN = ("register", "reschedule", "update", "pause", "resume", "cancel", "trigger")


class DjangoScheduler(Scheduler):
    """As :class:`Scheduler`. Inside of ``transaction.atomic`` on ``using`` a command is given in
    that transaction: no ``transaction.on_commit`` is needed, and a rollback leaves nothing of it.
    Outside it is carried out at once. ``connection=`` says otherwise.
    """

    def __init__(self, using: str = "default", *, settings: Settings | None = None) -> None:
        super().__init__(settings=settings)
        self.using = using

    def atomic_connection(self) -> Any:
        """Django's connection, where a transaction is open on it."""
        from django.db import connections

        connection = connections[self.using]
        return connection if connection.in_atomic_block else None


def _within_atomic(name: str) -> Any:
    method = getattr(Scheduler, name)

    @wraps(method)
    def call(self: DjangoScheduler, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("connection") is None:
            kwargs["connection"] = self.atomic_connection()
        return method(self, *args, **kwargs)

    return call


for _name in _WITHIN:
    setattr(DjangoScheduler, _name, _within_atomic(_name))

_known: DjangoScheduler | None = None


def scheduler() -> DjangoScheduler:
    """The project's scheduler, as ``settings.HOROLOG`` has it; one for all threads of the process.

    Raises ``InvalidSetting``.
    """
    global _known
    if _known is None:
        found = configuration()
        _known = DjangoScheduler(found.alias, settings=found.settings)
    return _known


def _forget() -> None:
    """A process that was forked makes connections of its own: two must not share one."""
    global _known
    _known = None


os.register_at_fork(after_in_child=_forget)
