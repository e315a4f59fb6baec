"""Runs in messages: what many share is encoded once, and each reads as if it had been alone."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.application.ready import ClaimsEncoder, decode, encode_run, ready_run
from horolog.domain.definition import JobDefinition
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.retry import Retry
from horolog.domain.schedule import Every

START = datetime(2026, 7, 1, tzinfo=UTC)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
_DEFINITIONS = st.builds(
    JobDefinition,
    name=st.sampled_from(["ping", "mail.send"]),
    schedule=st.just(Every(60, anchor=START).to_json()),
    queue=st.sampled_from(["default", "other"]),
    payload=st.dictionaries(_TEXT, st.integers() | _TEXT | st.none(), max_size=3),
    timeout=st.none() | st.floats(1, 100),
    owner=st.none() | _TEXT,
    retry=st.just(Retry()) | st.just(Retry(max_attempts=3)),
    on_unknown=st.sampled_from(["retry", "dead_letter"]),
)
_CLAIMS = st.builds(
    OccurrenceState,
    st.uuids(),
    st.uuids(),
    st.integers(0, 63),
    st.datetimes(START.replace(tzinfo=None), timezones=st.just(UTC)),
    st.sampled_from(["schedule", "trigger", "backfill"]),
    st.integers(1, 9),
    st.just("claimed"),
    st.integers(1, 9),
    st.integers(0, 3),
    definition_version=st.none() | st.integers(1, 5),
)
_MORE = st.fixed_dictionaries(
    {},
    optional={
        "lost": st.booleans(),
        "replayed": st.booleans(),
        "since": st.just(START + timedelta(microseconds=1)),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_DEFINITIONS, min_size=1, max_size=2), st.lists(_CLAIMS, max_size=6), _MORE)
def test_a_run_reads_the_same_however_much_of_it_was_encoded_before(
    definitions: list[JobDefinition], claims: list[OccurrenceState], more: dict[str, Any]
) -> None:
    encoder = ClaimsEncoder()
    for number, claimed in enumerate(claims):
        definition = definitions[number % len(definitions)]
        job = JobState(UUID(int=7), 3, "active", claimed.partition, definition, "key")
        alone = encode_run(ready_run(job, claimed, **more))
        together = encoder.encode(job, claimed, **more)
        assert _read(together) == _read(alone)


def _read(run: bytes) -> Any:
    return decode(b'{"format":1,"runs":[%b]}' % run)
