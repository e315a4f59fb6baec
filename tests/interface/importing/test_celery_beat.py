"""django-celery-beat's tables, from a dump and from the database."""

import json
from typing import Any

import psycopg
import pytest
from psycopg import sql

from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.postgres.celery_beat_tables import celery_beat_rows
from horolog.interface.importing.celery_beat import read_dump, read_tables, rows_by_key
from horolog.interface.importing.declared import Imported

CRONTAB = {
    "minute": "*/15", "hour": "6, 7", "day_of_week": "mon-fri", "day_of_month": "*",
    "month_of_year": "*", "timezone": "Europe/Berlin",
}  # fmt: skip
TASK: dict[str, Any] = {
    "name": "Bills", "task": "shop.tasks.bill", "interval": None, "crontab": 1, "solar": None,
    "clocked": None, "args": "[]", "kwargs": '{"n": 1}', "queue": None, "exchange": None,
    "routing_key": None, "headers": "{}", "priority": None, "expires": None,
    "expire_seconds": None, "one_off": False, "start_time": None, "enabled": True,
}  # fmt: skip


def dump(*tasks: dict[str, Any], **schedules: dict[str, Any]) -> Imported:
    records = [
        {"model": "django_celery_beat.crontabschedule", "pk": 1, "fields": CRONTAB},
        *(
            {"model": f"django_celery_beat.{kind}schedule", "pk": 1, "fields": fields}
            for kind, fields in schedules.items()
        ),
        *(
            {"model": "django_celery_beat.periodictask", "pk": n, "fields": TASK | task}
            for n, task in enumerate(tasks)
        ),
    ]
    return read_dump(json.dumps(records))


def test_a_crontab_schedule_keeps_its_zone_and_its_arguments() -> None:
    (job,) = dump({}).jobs
    assert job["schedule"] == {"cron": "*/15 6,7 * * mon-fri", "zone": "Europe/Berlin"}
    assert (job["key"], job["name"], job["payload"]) == ("Bills", "shop.tasks.bill", {"n": 1})


def test_intervals_clocks_and_limits() -> None:
    found = dump(
        {"name": "a", "crontab": None, "interval": 1, "expire_seconds": 30, "queue": "fast"},
        {"name": "b", "crontab": None, "clocked": 1, "one_off": True, "args": "[1, 2]"},
        interval={"every": 90, "period": "minutes"},
        clocked={"clocked_time": "2030-01-01T00:00:00Z"},
    )
    first, second = found.jobs
    assert first["schedule"] == {"every": 5400.0}
    assert (first["catch_up_window"], first["queue"]) == (30.0, "fast")
    assert second["schedule"]["at"] == "2030-01-01T00:00:00Z"
    assert second["payload"] == {"n": 1, "args": [1, 2]}
    said = " ".join(remark.said for remark in found.remarks)
    assert "counts from the last run" in said
    assert "positional arguments" in said


@pytest.mark.parametrize(
    ("task", "schedule", "said"),
    [
        ({"enabled": False}, {}, "disabled"),
        ({"task": "celery.backend_cleanup"}, {}, "Celery's own"),
        ({"crontab": None}, {}, "no schedule"),
        ({"crontab": 9}, {}, "not in the dump"),
        ({"crontab": None, "solar": 1}, {"solar": {"event": "sunrise"}}, "solar"),
        ({"kwargs": "{nonsense"}, {}, "no JSON"),
        ({"queue": "with spaces"}, {}, "queue"),
        ({"crontab": None, "interval": 1}, {"interval": {"every": 1, "period": "aeons"}}, "0"),
    ],
)
def test_what_cannot_be_is_refused_with_the_cause(
    task: dict[str, Any], schedule: dict[str, Any], said: str
) -> None:
    found = dump(task, **schedule)
    assert found.jobs == []
    assert said in " ".join(one.said for one in found.remarks if one.kind == "refused")


def test_both_day_fields_mean_something_else() -> None:
    tables = {
        "periodictask": {1: TASK},
        "crontabschedule": {1: CRONTAB | {"day_of_month": "1-7"}},
    }
    (remark,) = read_tables(tables).remarks
    assert "both at once" in remark.said


def test_what_is_no_dump_says_so() -> None:
    for text in ("{}", "[1]", "nonsense"):
        with pytest.raises(ValueError, match=r"list|model|Expecting"):
            read_dump(text)


def test_the_tables_of_a_database_are_read(database_url: str, namespace: str) -> None:
    url = f"{database_url}{'&' if '?' in database_url else '?'}options=-csearch_path%3D{namespace}"
    with pytest.raises(StoreUnavailable, match="celery-beat"):
        celery_beat_rows(url)
    with psycopg.connect(database_url) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(namespace)))
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(namespace)))
        for table in ("interval", "clocked", "solar"):
            name = sql.Identifier(f"django_celery_beat_{table}schedule")
            connection.execute(sql.SQL("CREATE TABLE {} (id int)").format(name))
        connection.execute(
            "CREATE TABLE django_celery_beat_crontabschedule AS SELECT 1 AS id, '5' AS minute,"
            " '*' AS hour, '*' AS day_of_week, '*' AS day_of_month, '*' AS month_of_year,"
            " 'UTC' AS timezone"
        )
        connection.execute(
            "CREATE TABLE django_celery_beat_periodictask AS SELECT 7 AS id, 'n' AS name,"
            " 't.a' AS task, 1 AS crontab_id, NULL::int AS interval_id, '[]' AS args,"
            " '{}' AS kwargs, true AS enabled, false AS one_off"
        )
    (job,) = read_tables(rows_by_key(celery_beat_rows(url))).jobs
    assert (job["key"], job["schedule"]) == ("n", {"cron": "5 * * * *", "zone": "UTC"})
