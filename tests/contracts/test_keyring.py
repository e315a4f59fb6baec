"""The contract of every keyring: what is sealed is opened in its place, until it is forgotten."""

import threading
from collections.abc import Generator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from tests.contracts.conftest import MovedClock

from horolog.application.decision import Decision, Guard, NewEvent
from horolog.application.log import AppendsToLog
from horolog.application.privacy.ports import Keyring
from horolog.domain.errors import InvalidPayload, SubjectForgotten
from horolog.domain.ids import subject_stream
from horolog.domain.sealed import Token, envelope, token_of
from horolog.domain.subject_events import Forgotten
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.subject_keys import PostgresSubjectKeys
from horolog.infrastructure.privacy.keyring import CachedKeyring
from horolog.infrastructure.privacy.master_keys import MasterKeys, new_master_key
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.subjects import SimulatedKeyring

PLACE = UUID(int=42)


@dataclass
class Kept:
    """A keyring and the log that it goes with."""

    keyring: Keyring
    log: AppendsToLog
    namespace: str

    def forget(self, subject: str) -> str:
        stream = subject_stream(self.namespace, subject)
        event = NewEvent(stream, 1, Forgotten(subject=subject))
        decision = Decision(Guard("nothing", stream, 0), 0, [event], forgotten=(subject,))
        return self.log.append([decision]).verdicts[0]


@pytest.fixture(params=["postgres", "simulated"])
def kept(request: pytest.FixtureRequest, namespace: str) -> Generator[Kept]:
    if request.param == "simulated":
        memory = SimulatedLog(MovedClock().now, namespace=namespace)
        yield Kept(SimulatedKeyring(memory.tables, namespace), memory, namespace)
        return
    database = Database(request.getfixturevalue("database_url"), namespace)
    migrate(database)
    masters = MasterKeys.read(new_master_key())
    keyring = CachedKeyring(PostgresSubjectKeys(database), lambda: masters, namespace)
    yield Kept(keyring, PostgresLog(database), namespace)
    database.close()


@pytest.mark.parametrize("value", [{"card": "4111", "of": ["Änn", None, 1.5]}, [], "", None, 0])
def test_what_is_sealed_is_opened_again(kept: Kept, value: object) -> None:
    token = kept.keyring.seal("ann", PLACE, value)
    assert token.place == PLACE
    assert token_of(envelope(token)) == token
    opened = kept.keyring.open(token)
    assert opened is not None
    assert opened.value == value


def test_the_same_value_gives_another_cipher_text_each_time(kept: Kept) -> None:
    assert kept.keyring.seal("ann", PLACE, 1) != kept.keyring.seal("ann", PLACE, 1)


def test_who_opened_a_value_seals_others_of_its_subject(kept: Kept) -> None:
    token = kept.keyring.seal("ann", PLACE, 1)
    opened = kept.keyring.open(token)
    assert opened is not None
    other = opened.seal(UUID(int=43), "result")
    assert other.key == token.key
    again = kept.keyring.open(other)
    assert again is not None
    assert again.value == "result"


def test_each_subject_has_a_key_of_its_own(kept: Kept) -> None:
    ann, bob = kept.keyring.seal("ann", PLACE, 1), kept.keyring.seal("bob", PLACE, 1)
    assert ann.key != bob.key
    assert kept.forget("ann") == "accepted"
    kept.keyring.drop([ann.key])
    assert kept.keyring.open(ann) is None
    assert kept.keyring.open(bob) is not None
    assert kept.keyring.erased([ann.key, bob.key]) == {ann.key}


def test_a_forgotten_subject_seals_no_more_and_is_forgotten_once(kept: Kept) -> None:
    token = kept.keyring.seal("ann", PLACE, 1)
    opened = kept.keyring.open(token)
    assert kept.forget("ann") == "accepted"
    kept.keyring.drop()
    with pytest.raises(SubjectForgotten, match="'ann' was forgotten"):
        kept.keyring.seal("ann", PLACE, 2)
    assert kept.forget("ann") == "conflict"
    # An attempt that runs on may seal its outcome, which nobody can read then.
    assert opened is not None
    assert kept.keyring.open(opened.seal(PLACE, "late")) is None


def test_a_subject_without_data_can_be_forgotten_and_never_gets_a_key(kept: Kept) -> None:
    assert kept.forget("nobody") == "accepted"
    with pytest.raises(SubjectForgotten):
        kept.keyring.seal("nobody", PLACE, 1)


def test_a_key_that_nobody_has_is_said_to_be_missing(kept: Kept) -> None:
    with pytest.raises(InvalidPayload):
        kept.keyring.open(Token(uuid4(), PLACE, "AAAA"))


def test_many_who_seal_a_subjects_first_value_at_once_share_its_key(kept: Kept) -> None:
    tokens: list[Token] = []
    start = threading.Barrier(4)

    def seal() -> None:
        start.wait()
        tokens.append(kept.keyring.seal("ann", PLACE, 1))

    threads = [threading.Thread(target=seal) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({token.key for token in tokens}) == 1
    assert all(kept.keyring.open(token) is not None for token in tokens)
