"""The library's projection runner made durable: one at a time, and again after a failure.

The library's runner ends with the first error, and nothing keeps two of one name apart but that the
slower one fails. Here a lock in the database does, and an error that passes costs a pause.
"""

import logging
from collections.abc import Callable
from threading import Event
from typing import Any, Final

from eventsourcing.persistence import OperationalError
from eventsourcing.projection import ProjectionRunner

from horolog.application.projecting.running import STAND_BY_S, Patience
from horolog.domain.errors import SchemaMissing, StoreUnavailable
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.own_projections import PostgresPlace

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5
"""How often it is looked whether to stop, and whether the lock is still held."""


def run_durably(
    make: Callable[[], ProjectionRunner[Any, Any]],
    database: Database,
    follower: str,
    *,
    stop: Event,
    patience: Patience | None = None,
) -> None:
    """Runs what ``make`` makes until ``stop`` is set; makes it anew after an error.

    ``follower`` is the name under which its view tracks (``view.name_of("horolog")``), by which
    ``horolog doctor`` tells how far behind it is. Another process with the same waits. A store that
    is away is waited for; any other error is raised when it has come ``patience.attempts`` times
    without the position having moved in between.
    """
    patience = patience or Patience()
    place = PostgresPlace(database, follower)
    failures, reached = 0, 0
    while not stop.is_set():
        try:
            if not place.take():
                stop.wait(STAND_BY_S)
                continue
            reached = place.position(0)
            _follow(make, place, stop)
        except SchemaMissing:
            raise
        except (StoreUnavailable, OperationalError) as error:
            log.warning("follower %s begins again: %s", follower, error)
            stop.wait(patience.pause_s(1))
        except Exception as error:
            try:
                failures = 1 if place.position(0) > reached else failures + 1
            except StoreUnavailable:
                failures = max(failures, 1)  # nobody can say whether it moved: it is waited for
            if failures >= patience.attempts:
                raise
            log.warning("follower %s, failure %d: %s", follower, failures, error)
            stop.wait(patience.pause_s(failures))
        finally:
            place.release()


def _follow(
    make: Callable[[], ProjectionRunner[Any, Any]], place: PostgresPlace, stop: Event
) -> None:
    with make() as runner:
        try:
            while not stop.is_set():
                runner.run_forever(timeout=LOOK_S)
                place.position(0)  # raises where the connection that holds the lock has ended
        finally:
            runner.view.close()
