"""The settings of the embedded Postgres, written anew at each start.

Durable as in production: an acknowledged commit survives a power cut. Sized for two cores and a
shared machine. Whoever wants others uses ``ALTER SYSTEM``, which Postgres reads after this file.
"""

_SETTINGS: dict[str, str] = {
    # One private socket; nothing on the network.
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    # Every acknowledged event is on disk.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # Two cores, and other programs beside us. A log is written far more than it is read.
    "max_connections": "100",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "maintenance_work_mem": "128MB",
    "work_mem": "8MB",
    "max_parallel_workers": "2",
    "max_parallel_workers_per_gather": "1",
    "random_page_cost": "1.1",
    # Seldom checkpoints: each makes the next write of every page a whole page in the WAL.
    "max_wal_size": "2GB",
    "min_wal_size": "256MB",
    "checkpoint_timeout": "15min",
    # The index of next runs is rewritten all the time: look after it often.
    "autovacuum_naptime": "15s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "client_encoding": "UTF8",
    # The server's own life only: what a statement did wrong is told to its client, and a refused
    # claim is everyday business that would fill the file.
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_min_messages": "log",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
}

HBA = """\
# The rights of the socket's directory decide who may connect: its owner and root.
local all all trust
local replication all trust
"""


def settings(*, socket_directory: str, lz4: bool) -> str:
    """The text of ``postgresql.conf``; ``lz4`` if the server was built with it."""
    chosen = {
        **_SETTINGS,
        "unix_socket_directories": f'"{socket_directory}"',  # a list; commas are possible
        # Postgres's own compression costs more CPU than the disk that it saves on two cores.
        "wal_compression": "lz4" if lz4 else "off",
    }
    lines = [f"{name} = {_quoted(value)}" for name, value in chosen.items()]
    return "\n".join(["# Written by Horolog at each start; use ALTER SYSTEM instead.", *lines, ""])


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
