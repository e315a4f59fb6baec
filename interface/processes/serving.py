"""Servers to work with: those that the settings name, else the embedded ones of the home; migrated.

For `horolog dev` and the demo. What was named by a URL is used as it is and left alone; what was
not is started in the home, and stopped at the end unless others use it.
"""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from horolog.infrastructure.embedded.shared_use import in_use
from horolog.interface.settings import Settings
from horolog.interface.several_logs import migrate_all


@contextmanager
def served(settings: Settings) -> Generator[Settings]:
    """The settings with both URLs stated; both servers answer and the schema is there.

    Raises ``EmbeddedServerFailed``, ``StoreUnavailable``, ``QueueUnavailable``, ``SchemaTooNew``.
    """
    postgres = settings.given_database_url is None
    nats = settings.given_nats_url is None
    embedded = in_use(settings.home, postgres=postgres, nats=nats)
    with embedded if postgres or nats else nullcontext():
        stated = replace(
            settings,
            given_database_url=settings.all_database_urls(),
            given_nats_url=settings.nats_url(),
        )
        migrate_all(stated)
        yield stated
