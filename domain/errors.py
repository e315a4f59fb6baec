"""Everything that Horolog can refuse, in one tree.

    HorologError
    ├── InvalidSchedule      a schedule that cannot be read, or can never fire
    ├── InvalidPayload       a payload that is not JSON, too large, or not what the handler takes
    ├── InvalidPolicy        a retry, overlap, catch-up, queue or limit that makes no sense
    ├── InvalidSetting       a setting or a connection string that cannot be used
    │   └── NoMasterKey      the master key that a subject's key is wrapped with is not at hand
    ├── UnknownJob           no job has this id or key
    ├── UnknownOccurrence    no occurrence has this id
    ├── KeyConflict          the key belongs to a job with another definition
    ├── VersionConflict      somebody else changed it first
    ├── NotAllowed           the state does not permit the command
    │   └── SubjectForgotten     the subject was forgotten, and nothing of it comes back
    ├── StaleFence           a newer leader was elected for the partition
    ├── UnreadableEvent      an event in the log that this release cannot read
    │   └── ProjectionStopped    a rebuild has met an event that it cannot apply
    ├── OutOfRange           a number or an instant that the store has no room for
    ├── StoreUnavailable     Postgres cannot be reached, or refuses us
    │   ├── SchemaMissing    the database has no Horolog schema: run ``horolog migrate``
    │   └── SchemaTooNew     the schema belongs to a newer release than this code
    └── QueueUnavailable     NATS cannot be reached, or has no JetStream

A message says what was wrong, with which value, and what would be right. A command that raises one
of these left no event behind.
"""


class HorologError(Exception):
    """The root: catch this to catch whatever Horolog refuses."""


class InvalidSchedule(HorologError, ValueError):
    """A schedule that cannot be read, names no known zone, or can never fire."""


class InvalidPayload(HorologError, ValueError):
    """A payload that is not JSON, is too large, or does not fit the handler's signature."""


class InvalidPolicy(HorologError, ValueError):
    """A policy (retry, overlap, catch-up, queue, priority, limit) outside of what it may be."""


class InvalidSetting(HorologError, ValueError):
    """A setting, an environment variable or a connection string that cannot be used."""


class NoMasterKey(InvalidSetting):
    """A subject's key is wrapped with a master key that is not among the settings; nothing is lost.

    With the right one in ``HOROLOG_MASTER_KEY`` or ``HOROLOG_MASTER_KEY_FILE`` it can be read.
    """


class UnknownJob(HorologError, LookupError):
    """No job has this id or key in this namespace."""


class UnknownOccurrence(HorologError, LookupError):
    """No occurrence has this id in this namespace."""


class KeyConflict(HorologError):
    """The key is taken by a job with another definition; ``replace=True`` would change that job."""


class VersionConflict(HorologError):
    """What was changed had been changed by somebody else: read it again and decide anew.

    ``seen`` is the version that the command expected, ``current`` the one that the log holds
    (``None`` where it was not read again).
    """

    def __init__(self, message: str, *, seen: int | None = None, current: int | None = None):
        super().__init__(message)
        self.seen = seen
        self.current = current


class NotAllowed(HorologError):
    """The state of the job or the occurrence does not permit this command."""


class SubjectForgotten(NotAllowed):
    """The subject was forgotten: its key is destroyed, and no job can carry data of it again."""


class StaleFence(HorologError):
    """The fencing token is older than one that the log has accepted: another leader was elected."""


class UnreadableEvent(HorologError):
    """An event whose topic or state this release cannot read; the message names its position."""


class OutOfRange(HorologError, ValueError):
    """A number or an instant that the store can neither keep nor give back; nothing was written.

    What people give is checked before: such a value comes from a row that somebody made by hand.
    """


class ProjectionStopped(UnreadableEvent):
    """A rebuild has met an event that it cannot apply, at ``position``, and stands before it.

    The read models that are in use are untouched, and what was rebuilt so far is kept.
    """

    def __init__(self, message: str, *, position: int):
        super().__init__(message)
        self.position = position


class StoreUnavailable(HorologError):
    """Postgres cannot be reached or refuses the connection; nothing was written."""


class SchemaMissing(StoreUnavailable):
    """The database holds no schema of this namespace: run ``horolog migrate``."""


class SchemaTooNew(StoreUnavailable):
    """The schema was made by a newer release than this code: upgrade the code."""


class QueueUnavailable(HorologError):
    """NATS cannot be reached, refuses the connection, or has no JetStream."""
