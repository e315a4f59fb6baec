"""What is raised when an embedded server cannot be had.

    HorologError
    └── EmbeddedServerFailed        the home cannot be used, or either of:
        ├── EmbeddedPostgresFailed  also a StoreUnavailable
        └── EmbeddedNatsFailed      also a QueueUnavailable

The message carries the server's own last lines and what to do: whoever reads it has no other place
to look, since the server was started behind their back.
"""

from horolog.domain.errors import HorologError, QueueUnavailable, StoreUnavailable


class EmbeddedServerFailed(HorologError):
    """An embedded server could not be started, found or stopped; the message says why."""


class EmbeddedPostgresFailed(EmbeddedServerFailed, StoreUnavailable):
    """The embedded Postgres is not available."""


class EmbeddedNatsFailed(EmbeddedServerFailed, QueueUnavailable):
    """The embedded NATS is not available."""
