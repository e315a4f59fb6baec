"""Another master key: the keys of all subjects are wrapped anew, and what is sealed stays as it is.

May run while everything else does: a process that has both master keys reads a key under either.
Interrupted, it goes on where it stopped. Once nothing is wrapped with the old one, that can be
destroyed, and with it whatever backups hold of keys that were wrapped with it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from horolog.domain.errors import NoMasterKey
from horolog.infrastructure.postgres.subject_keys import PostgresSubjectKeys
from horolog.infrastructure.privacy.keyring import about_key
from horolog.infrastructure.privacy.master_keys import MasterKeys


@dataclass(frozen=True, slots=True)
class Rotation:
    """How many keys were wrapped anew, and how many were destroyed that the log says are."""

    master: str
    wrapped: int
    destroyed: int


def rotate(
    store: PostgresSubjectKeys,
    masters: MasterKeys,
    namespace: str,
    progress: Callable[[int], None] | None = None,
) -> Rotation:
    """Wraps every key with the current master key, and destroys those of forgotten subjects that a
    restored table brought back.

    Raises ``NoMasterKey`` where a key cannot be unwrapped (what was wrapped before stays), and
    ``StoreUnavailable``.
    """
    if masters.current is None:
        raise NoMasterKey("there is no master key to wrap with: set HOROLOG_MASTER_KEY")
    destroyed = store.destroy_half_forgotten()
    wrapped = 0
    for page in store.wrapped_with_others(masters.current):
        for key in page:
            assert key.wrapped is not None
            about = about_key(namespace, key.subject, key.id)
            wrapped += store.rewrap(key, masters.wrap(masters.unwrap(key.wrapped, about), about))
        if progress is not None:
            progress(wrapped)
    return Rotation(masters.current, wrapped, destroyed)
