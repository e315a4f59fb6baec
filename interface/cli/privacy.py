"""`horolog privacy`: the master keys that the keys of subjects are encrypted with."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output

if TYPE_CHECKING:
    from horolog.infrastructure.postgres.subject_keys import PostgresSubjectKeys
    from horolog.interface.settings import Settings


@click.group(cls=NamedGroup)
def privacy() -> None:
    """The keys that encrypt the data of subjects (docs/privacy.md)."""


@privacy.command("new-key")
@at_a_place
def new_key(place: Place, output: Output) -> None:
    """Print a new master key, for HOROLOG_MASTER_KEY or the file of HOROLOG_MASTER_KEY_FILE."""
    from horolog.infrastructure.privacy.master_keys import new_master_key

    del place
    key = new_master_key()
    if output.as_json:
        output.document({"master_key": key})
    else:
        output.say(key)


@privacy.command()
@at_a_place
def status(place: Place, output: Output) -> None:
    """Count the subjects' keys by the master key that encrypts them.

    Exits 1 where one is needed that is not here.
    """
    settings = place.settings()
    masters = settings.master_keys()
    with _keys(settings) as keys:
        counts = keys.counts()
    forgotten = counts.pop(None, 0)
    missing = sorted(str(master) for master in counts if master not in masters.fingerprints)
    if output.as_json:
        output.document(
            {
                "current": masters.current,
                "here": masters.fingerprints,
                "keys": {str(master): count for master, count in counts.items()},
                "forgotten": forgotten,
                "missing": missing,
            }
        )
    else:
        rows = [
            (master, count, _place(str(master), masters.current, masters.fingerprints))
            for master, count in counts.items()
        ]
        output.table(["master key", "subjects", ""], rows, empty="no subject has a key")
        output.say(f"{forgotten} subjects are forgotten")
    if missing:
        click.get_current_context().exit(1)


@privacy.command()
@at_a_place
def rotate(place: Place, output: Output) -> None:
    """Encrypt the key of every subject with the first master key.

    Put the new key before the old one in the setting of every process first; take the old one away
    afterwards. Nothing else is touched, and everything may go on meanwhile.
    """
    from horolog.infrastructure.privacy.rotation import rotate as apply

    settings = place.settings()
    with _keys(settings) as keys:
        done = apply(keys, settings.master_keys(), settings.namespace)
    if output.as_json:
        output.document(
            {"master": done.master, "wrapped": done.wrapped, "destroyed": done.destroyed}
        )
        return
    output.say(f"{done.wrapped} keys are encrypted anew, with the master key {done.master}")
    if done.destroyed:
        output.say(f"{done.destroyed} keys of subjects that were forgotten were here again: gone")


@contextmanager
def _keys(settings: "Settings") -> "Generator[PostgresSubjectKeys]":
    from horolog.infrastructure.postgres.database import Database
    from horolog.infrastructure.postgres.subject_keys import PostgresSubjectKeys

    database = Database(settings.database_url(), settings.namespace)
    try:
        yield PostgresSubjectKeys(database)
    finally:
        database.close()


def _place(master: str, current: str | None, here: list[str]) -> str:
    if master == current:
        return "the current one"
    return "here too: `horolog privacy rotate`" if master in here else "MISSING here"
