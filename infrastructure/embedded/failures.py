"""What is raised when the embedded servers cannot be had.

    EmbeddedServerFailed            catch this for any of them
    ├── EmbeddedHomeFailed          the home cannot be used: StoreUnavailable and QueueUnavailable
    ├── EmbeddedPostgresFailed      also a StoreUnavailable
    └── EmbeddedNatsFailed          also a QueueUnavailable

The message carries the server's own last lines and what to do: whoever reads it has no other place
to look, since the server was started behind their back.
"""

from horolog.domain.errors import HorologError, QueueUnavailable, StoreUnavailable


class EmbeddedServerFailed(HorologError):
    """The embedded servers, or one of them, could not be started, found or stopped."""


class EmbeddedHomeFailed(EmbeddedServerFailed, StoreUnavailable, QueueUnavailable):
    """The directory of the servers, or the user to run them as, is not to be had."""


class EmbeddedPostgresFailed(EmbeddedServerFailed, StoreUnavailable):
    """The embedded Postgres is not available."""


class EmbeddedNatsFailed(EmbeddedServerFailed, QueueUnavailable):
    """The embedded NATS is not available."""
