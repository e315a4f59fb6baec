"""Where followers stand: the statements on the ``tracking`` table, for all who move in it."""

from typing import Final

TRACK: Final = "SELECT :schema.track(%s, %s)"
"""Moves a follower on; a unique violation where it has been there already."""

TRACKED: Final = "SELECT position FROM :schema.tracking WHERE follower = %s"

BEGIN: Final = """
    INSERT INTO :schema.tracking (follower, position) VALUES (%s, %s) ON CONFLICT DO NOTHING
"""
FORGET: Final = "DELETE FROM :schema.tracking WHERE follower = %s"
