"""Running a user's projection: ``run_projection`` here, ``horolog projection run`` as a process.

    from horolog import Projection, run_projection

    class Runs(Projection):
        name = "runs"
        topics = ("occurrence.succeeded",)

        def set_up(self, view):
            view.execute("CREATE TABLE IF NOT EXISTS runs (day date PRIMARY KEY, n int)")

        def apply(self, event, view):
            view.execute("INSERT INTO runs …", (event.recorded_at,))

    run_projection(Runs())

A larger one, with its tests, is in ``examples/own_projection.py``.
"""

from collections.abc import Collection
from threading import Event

from horolog.application.projecting.projection import Projection
from horolog.application.projecting.running import Bounds, Patience, Running
from horolog.application.queries.asking import checked_topics
from horolog.application.queries.following import Follower
from horolog.domain.errors import InvalidSetting, NotAllowed
from horolog.domain.text import is_storable
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.log_news import PostgresLogNews
from horolog.infrastructure.postgres.log_position import log_position
from horolog.infrastructure.postgres.migrate import check_schema
from horolog.infrastructure.postgres.own_projections import PostgresPlace
from horolog.interface.loading import load, wrong_kind
from horolog.interface.scheduler import Scheduler
from horolog.interface.settings import Settings

MAX_NAME = 200


def run_projection(
    projection: Projection,
    scheduler: Scheduler | None = None,
    *,
    stop: Event | None = None,
    until: int | None = None,
    skip: Collection[int] = (),
    batch: int = 500,
    patience: Patience | None = None,
) -> int:
    """Follows the log with a projection, each event exactly once; how many were applied.

    Of the namespace that ``scheduler`` is of, or of the environment's. Runs for ever: until
    ``stop`` is set (from another thread), or the place in the log is ``until``, such as
    ``scheduler.position()``. Another runner of the same name is waited for. Events at positions in
    ``skip`` are passed over; ``batch`` is the most events of one transaction, ``patience`` how an
    event that cannot be applied is tried again.

    Raises ``ProjectionStopped`` before such an event, ``UnreadableEvent``, ``InvalidSetting`` for
    a name that cannot be kept, ``InvalidPolicy`` for a topic that no event has, ``SchemaMissing``.
    A store that is away is waited for, but at the start: then it is ``StoreUnavailable``.
    """
    name, topics = _checked_name(projection), checked_topics(projection.topics)
    stopped = stop or Event()
    database = _database(scheduler)
    try:
        check_schema(database)
        begin = log_position(database) if projection.begin == "now" else _begin(projection)
        running = Running(
            projection,
            PostgresPlace(database, name),
            lambda after: Follower(
                PostgresLog(database), PostgresLogNews(database), after=after, topics=topics
            ),
            begin=begin,
            bounds=Bounds(batch, until, skip),
            patience=patience,
            stopping=stopped.is_set,
            pause=stopped.wait,
        )
        return running.run()
    finally:
        database.close()


def reset_projection(projection: Projection, scheduler: Scheduler | None = None) -> None:
    """Lets a projection begin again: tears it down and forgets its place, in one transaction.

    Raises ``NotAllowed`` while a runner of it is alive.
    """
    database = _database(scheduler)
    place = PostgresPlace(database, _checked_name(projection))
    try:
        check_schema(database)
        if not place.take():
            raise NotAllowed(f"projection {projection.name} is running: stop its runner first")
        with place.forget() as view:
            projection.tear_down(view)
    finally:
        place.release()
        database.close()


def load_projection(place: str) -> Projection:
    """The projection, or class of one, at ``"package.module:attribute"`` (``projection`` where no
    attribute is named). Raises ``InvalidSetting`` where there is none."""
    name, named = load(place, "projection", "projection")
    found: object = named
    if isinstance(named, type) and issubclass(named, Projection):
        found = named()
    if not isinstance(found, Projection):
        raise wrong_kind(name, found, "Projection")
    return found


def _database(scheduler: Scheduler | None) -> Database:
    settings = Settings.read() if scheduler is None else scheduler.settings
    return Database(settings.database_url(), settings.namespace)


def _checked_name(projection: Projection) -> str:
    name: object = getattr(projection, "name", None)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not is_storable(name):
        raise InvalidSetting(
            f"{type(projection).__name__}.name={name!r}: a projection has a name of 1 to"
            f" {MAX_NAME} characters, which its place in the log is kept under"
        )
    return name


def _begin(projection: Projection) -> int:
    if isinstance(projection.begin, str) or projection.begin < 0:
        raise InvalidSetting(
            f'{type(projection).__name__}.begin={projection.begin!r}: a position, or "now"'
        )
    return projection.begin
