"""Whatever text comes in is understood or refused with an error of ours: never anything else."""

import json
import time
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.conftest import fuzzed, refusal

from horolog.application.ready import ReadyRun, decode, encode
from horolog.domain.errors import (
    InvalidSchedule,
    InvalidSetting,
    UnreadableEvent,
)
from horolog.domain.event import read_event
from horolog.domain.ids import drawn_job_id
from horolog.domain.schedule import Calendar, Cron
from horolog.interface.settings import Settings, without_password

NOW = datetime(2027, 3, 1, tzinfo=UTC)
CRON_TEXT = st.text(alphabet="0123456789*/,-LW#?H@ adeilmnortuwy\t", max_size=40)
FIELDS = st.lists(st.text(alphabet="0123456789*/,-LW#?H", min_size=1, max_size=8), max_size=7)


@given(CRON_TEXT | FIELDS.map(" ".join) | st.text(max_size=20))
@example("*/0 * * * *")
@example("0 0 30 2 *")
@example("5-1/9999999999 * * * *")
@fuzzed
def test_a_cron_expression_fires_or_is_refused_and_soon(expression: str) -> None:
    began = time.perf_counter()
    try:
        instants = [fire.at for fire in Cron(expression, "Europe/Berlin").upcoming(NOW, 3)]
    except InvalidSchedule:
        instants = []
    assert instants == sorted(set(instants))
    assert all(instant > NOW for instant in instants)
    # 50 ms is the promise, shown by bench/schedules.py; here only what loops is to be found.
    assert time.perf_counter() - began < 5


@given(st.text(alphabet="FREQ=;DAILYWEKMONTHBSUIVPCO0123456789-+,T:\n", max_size=60))
@example("FREQ=DAILY;COUNT=0")
@example("FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2")
@fuzzed
def test_a_recurrence_rule_fires_or_is_refused(rule: str) -> None:
    try:
        fires = Calendar(rule, "Europe/Berlin").upcoming(NOW, 3)
    except InvalidSchedule:
        return
    assert all(fire.at > NOW for fire in fires)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@fuzzed
def test_bytes_on_the_ready_subject_are_no_message(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a ready message"):
        decode(data)


RUN = ReadyRun(
    occurrence=drawn_job_id(NOW, b"0" * 16), job=drawn_job_id(NOW, b"1" * 16), partition=1,
    fire_time=NOW, version=1, attempt=1, name="ping", payload={"n": 1},
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(json.loads(encode([RUN]))["runs"][0])), JSON)
@fuzzed
def test_a_message_with_one_wrong_field_is_read_or_refused(field: str, value: object) -> None:
    message = json.loads(encode([RUN]))
    message["runs"][0][field] = value
    said = refusal(lambda: decode(json.dumps(message).encode()), ValueError)
    assert said is None or "not a ready message" in said


@given(
    st.sampled_from(["job.registered.1", "occurrence.claimed.1", "occurrence.failed.1", "x.y.1"]),
    st.binary(max_size=60)
    | st.dictionaries(st.text(max_size=8), JSON).map(lambda v: json.dumps(v).encode()),
)
@fuzzed
def test_a_row_of_a_broken_release_is_named_and_not_guessed(topic: str, state: bytes) -> None:
    with pytest.raises(UnreadableEvent, match="event 7 "):
        read_event(topic, state, where="7")


URLS = st.text(max_size=30) | st.builds(
    "{}://{}".format, st.sampled_from(["postgresql", "nats", "http", ""]), st.text(max_size=30)
)


@given(URLS, URLS, st.text(max_size=50))
@fuzzed
def test_the_environment_is_used_or_refused_by_name(
    database: str, nats: str, namespace: str
) -> None:
    environment = {
        "HOROLOG_DATABASE_URL": database,
        "HOROLOG_NATS_URL": nats,
        "HOROLOG_NAMESPACE": namespace,
    }
    said = refusal(lambda: Settings.read(environment=environment), InvalidSetting)
    assert said is None or "HOROLOG_" in said


@given(st.text(alphabet=st.characters(exclude_characters="@/?&# \t\n"), min_size=1, max_size=20))
@fuzzed
def test_no_password_is_shown(password: str) -> None:
    marked = f"5ecret{password}"
    assert "5ecret" not in without_password(f"postgresql://app:{marked}@host:5432/db")
    said = refusal(lambda: Settings.read(f"http://app:{marked}@host", environment={}))
    assert said is not None
    assert "5ecret" not in said
