"""Postgres and NATS that come from wheels: real servers for development, tests and single machines.

Whoever has no database yet gets one here, with the durability of production (fsync on, JetStream on
disk). The servers belong to a *home*, a directory, and not to the process that started them: they
outlive it, every process that names the same home finds the same two, and the data stay in it.

The path: :mod:`.servers` (what callers use) → :mod:`.postgres_server` and :mod:`.nats_server` (one
server each) → :mod:`.launch` and :mod:`.processes` (starting, recognising and ending processes) and
:mod:`.home` (the directory, its lock and what must be the same after a restart).
"""

from horolog.infrastructure.embedded.failures import (
    EmbeddedHomeFailed,
    EmbeddedNatsFailed,
    EmbeddedPostgresFailed,
    EmbeddedServerFailed,
)
from horolog.infrastructure.embedded.servers import EmbeddedServers, Endpoints

__all__ = [
    "EmbeddedHomeFailed",
    "EmbeddedNatsFailed",
    "EmbeddedPostgresFailed",
    "EmbeddedServerFailed",
    "EmbeddedServers",
    "Endpoints",
]
