"""A connection string from its parts, quoted as libpq reads it."""

from collections.abc import Mapping

from psycopg.conninfo import make_conninfo


def conninfo_of(parts: Mapping[str, object]) -> str:
    """``host=… dbname=…``, of libpq's own names."""
    return make_conninfo("", **{name: str(value) for name, value in parts.items()})
