"""What a user writes: which events, and what each means for their tables."""

from collections.abc import Sequence
from typing import Any, ClassVar

from horolog.application.answers.logged_event import LoggedEvent


class Projection:
    """Derive from it, name it, and say what an event means.

    ``name`` is what its place in the log is kept under, and what ``horolog doctor`` calls it; under
    another name it begins anew, beside the old one. ``topics`` chooses events
    ("occurrence.succeeded.1", or a group such as "job"); all, where empty. ``begin`` is the
    position after which it starts the first time, or "now".

    ``view`` is a psycopg connection to the database of the log, inside of a transaction that is
    committed together with the place in the log: write only through it, neither commit nor roll
    back, and take less than a minute. Effects elsewhere (a mail, a call) would be repeated after a
    crash.
    """

    name: ClassVar[str]
    topics: ClassVar[Sequence[str]] = ()
    begin: ClassVar[int | str] = 0

    def set_up(self, view: Any) -> None:
        """Creates what is missing; called at each start, so say ``IF NOT EXISTS``."""

    def apply(self, event: LoggedEvent, view: Any) -> None:
        """Writes what the event means. What this raises is tried again, and then stops the
        projection before the event, with nothing of it written."""
        raise NotImplementedError

    def tear_down(self, view: Any) -> None:
        """Empties or drops what :meth:`set_up` created: for beginning again from the start."""
        raise NotImplementedError(
            f"{type(self).__name__} has no tear_down(view): it says how its tables are emptied"
        )
