"""The library's infrastructure factory for our log, so that its applications and runners find it.

Set ``PERSISTENCE_MODULE=horolog.infrastructure.eventsourcing.factory`` with
``HOROLOG_DATABASE_URL`` and ``HOROLOG_NAMESPACE``, as the library is configured: through the
environment or the mapping that an application or a runner takes.
"""

from typing import Any, ClassVar, TypeVar, cast
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    Mapper,
    NotSupportedError,
    ProcessRecorder,
    Transcoder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic, strtobool

from horolog.infrastructure.eventsourcing.mapper import HorologMapper
from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.eventsourcing.tracking import PostgresLogTracking
from horolog.infrastructure.postgres.database import Database

TView = TypeVar("TView", bound=PostgresLogTracking)


class HorologFactory(InfrastructureFactory[PostgresLogTracking]):
    """Makes recorders of one namespace; ``close`` closes its connections.

    ``HOROLOG_PLAIN=y`` makes the namespace a plain event store, see :class:`PostgresLogRecorder`.
    Each of the keys may be prefixed with the name of the application or projection, as the library
    does it; that name also tells the followers of one namespace apart.
    """

    DATABASE_URL = "HOROLOG_DATABASE_URL"
    NAMESPACE = "HOROLOG_NAMESPACE"
    PLAIN = "HOROLOG_PLAIN"

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        url = self.env.get(self.DATABASE_URL)
        if not url:
            raise OSError(f"{self.DATABASE_URL} is not set: it says which Postgres holds the log")
        self.database = Database(url, self.env.get(self.NAMESPACE) or "horolog")
        self.plain = strtobool(self.env.get(self.PLAIN) or "no")

    def mapper(
        self,
        transcoder: Transcoder | None = None,
        mapper_class: type[Mapper[Any]] | None = None,
    ) -> Mapper[Any]:
        """Horolog's mapper, unless another is asked for or the namespace is a plain store."""
        if self.plain or mapper_class is not None or self.env.get(self.MAPPER_TOPIC):
            return super().mapper(transcoder, mapper_class)
        return super().mapper(transcoder, HorologMapper)

    def process_recorder(self) -> ProcessRecorder:
        return PostgresLogRecorder(self.database, plain=self.plain, follower=self.env.name)

    def application_recorder(self) -> ApplicationRecorder:
        return self.process_recorder()

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        if purpose != "events":
            raise NotSupportedError(f"the log keeps no {purpose}: fold the events of the stream")
        return self.process_recorder()

    def tracking_recorder(self, tracking_recorder_class: type[TView] | None = None) -> TView:
        """A view's recorder, which has this namespace's database."""
        topic = self.env.get(self.TRACKING_RECORDER_TOPIC)
        found = resolve_topic(topic) if topic else PostgresLogTracking
        view_class = tracking_recorder_class or cast("type[TView]", found)
        return view_class(self.database, follower=self.env.name)

    def close(self) -> None:
        self.database.close()


class HorologLog(Application[UUID]):
    """Horolog's log as one of the library's applications, to be followed by its runners."""

    name = "horolog"
    env: ClassVar[dict[str, str]] = {
        "PERSISTENCE_MODULE": "horolog.infrastructure.eventsourcing.factory:HorologFactory"
    }
