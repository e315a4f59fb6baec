"""The example and the document on transactions do what they say."""

import re
import runpy
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from horolog import Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scheduler(database_url: str, namespace: str) -> Generator[Scheduler]:
    database = Database(database_url, namespace)
    migrate(database)
    database.close()
    with Scheduler(database_url, namespace=namespace) as client:
        yield client


def test_the_example_keeps_one_order_and_one_job(
    scheduler: Scheduler, namespace: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("HOROLOG_NAMESPACE", namespace)
    monkeypatch.setenv("PGOPTIONS", f"-c search_path={namespace}")
    runpy.run_path(str(ROOT / "examples" / "order_and_job.py"))["main"](
        scheduler.settings.database_url()
    )
    assert capsys.readouterr().out.splitlines() == [
        "order 1 was committed: job bill-1 is active",
        "order 2 was rolled back: it has no job",
        "order 1 once more was refused: 1 job in all",
    ]


def test_the_programs_of_the_document_run(scheduler: Scheduler, namespace: str) -> None:
    pieces = re.findall(r"```python\n(.*?)```", (ROOT / "docs/transactions.md").read_text(), re.S)
    place: dict[str, Any] = {}
    for piece in pieces:
        exec(piece, place)
    url = scheduler.settings.database_url()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (number int PRIMARY KEY)")
    try:
        job = place["place_order"](scheduler, url, 7, datetime.now(UTC) + timedelta(hours=1))
        assert scheduler.job(job).payload == {"order": 7}
    finally:
        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE orders")
    sqlalchemy = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with orm.Session(engine) as session:
        place["with_sqlalchemy"](scheduler, session)
    engine.dispose()
    assert scheduler.job("daily").version == 2
