"""FastAPI and Starlette: the scheduler's life is the application's, and routes ask for it.

app = FastAPI(lifespan=scheduling())

@app.post("/orders")
async def order(scheduler: CurrentScheduler) -> ...:
    job = await scheduler.register(...)
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from horolog.domain.errors import InvalidSetting
from horolog.interface.async_scheduler import AsyncScheduler

_Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def scheduling(
    scheduler: AsyncScheduler | None = None, *, within: _Lifespan | None = None
) -> _Lifespan:
    """A lifespan: the scheduler is connected before the first request and closed after the last.

    Without one, it is that of the environment (``HOROLOG_DATABASE_URL``, ``HOROLOG_NAMESPACE``).
    ``within`` is the application's own lifespan, which runs inside of it. The application does not
    start where the database is away or has no schema: ``StoreUnavailable``, ``SchemaMissing``.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncGenerator[Any]:
        async with scheduler or AsyncScheduler() as opened:
            app.state.horolog = opened
            if within is None:
                yield
            else:
                async with within(app) as state:
                    yield state

    return lifespan


def current_scheduler(connection: HTTPConnection) -> AsyncScheduler:
    """The application's scheduler, as a dependency; for requests and web sockets."""
    found = getattr(connection.app.state, "horolog", None)
    if not isinstance(found, AsyncScheduler):
        raise InvalidSetting("the application has no scheduler: FastAPI(lifespan=scheduling())")
    return found


CurrentScheduler = Annotated[AsyncScheduler, Depends(current_scheduler)]
"""The type of a route's parameter that is to be the scheduler."""
