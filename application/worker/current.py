"""The run that the present code belongs to: what a handler logs can be told apart by it."""

from contextvars import ContextVar

from horolog.application.worker.run import Run

current_run: ContextVar[Run | None] = ContextVar("horolog_run", default=None)
"""Set while a handler, its resolvers and its ``reconcile`` run, in their task or thread."""
