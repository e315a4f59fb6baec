"""The Django and the FastAPI example, as a project would run them."""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from horolog import Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate

EXAMPLES = Path(__file__).parents[2] / "examples"
STORY = """
import sys
import django_shop as shop
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from horolog import UnknownJob
from horolog.django import scheduler

call_command("horolog", "migrate")
shop.shop()

# Rolled back with the transaction, and with a savepoint.
try:
    with transaction.atomic():
        gone = shop.place(2)
        raise RuntimeError
except RuntimeError:
    pass
try:
    scheduler().job(gone.id)
except UnknownJob:
    print("order 2 has no job")

# The admin page: a person pauses the job, and the log says who.
call_command("migrate", verbosity=0)
get_user_model().objects.create_superuser("ann", password="x")
client = Client()
assert client.login(username="ann", password="x")
page = client.get("/admin/horolog/job/")
assert page.status_code == 200 and b"bill-1" in page.content, page.content
job = scheduler().job("bill-1")
assert client.get(f"/admin/horolog/job/{job.id}/change/").status_code == 200
asked = {"action": "pause", "_selected_action": [str(job.id)]}
answer = client.post("/admin/horolog/job/", asked, follow=True)
assert b"1 paused" in answer.content, answer.content
(paused,) = scheduler().history(job.id, after=1)
print(paused.topic, paused.actor, paused.reason)
assert client.post("/admin/horolog/job/", asked | {"action": "resume"}).status_code == 302
assert client.get("/admin/horolog/deadletter/").status_code == 200
assert client.get("/admin/horolog/job/add/").status_code == 403

# A handler uses Django's connections in its thread.
from horolog.testing import SimulatedScheduler
with SimulatedScheduler(shop.worker) as simulated:
    from horolog import Once
    simulated.register("orders.bill", schedule=Once(simulated.now), payload={"order": 1})
    simulated.run_due()
    print([run.state for run in simulated.occurrences()])
with connection.cursor() as cursor:
    cursor.execute("SELECT billed FROM shop_orders")
    print(cursor.fetchall())
"""


@pytest.fixture
def place(database_url: str, namespace: str) -> Generator[dict[str, str]]:
    """A migrated namespace, and a search path so that the example's own tables are in it."""
    database = Database(database_url, namespace)
    migrate(database)
    joint = "&" if "?" in database_url else "?"
    yield os.environ | {
        "HOROLOG_DATABASE_URL": f"{database_url}{joint}options=-csearch_path%3D{namespace}",
        "HOROLOG_NAMESPACE": namespace,
        "PYTHONWARNINGS": "default",
    }
    database.close()


def test_the_django_project_orders_pauses_and_bills(place: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STORY], cwd=EXAMPLES, env=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "the schema is current",
        "order 1: job bill-1 is active",
        "order 2 has no job",
        "job.paused.1 shop ann in the admin",
        "['succeeded']",
        "[(True,)]",
    ]


def test_horologs_command_line_is_part_of_manage_py(place: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "django_shop.py", "horolog", "job", "list", "--json"],
        cwd=EXAMPLES, env=place, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


async def test_the_fastapi_application_registers_and_withdraws(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx

    from horolog import InvalidSetting
    from horolog.fastapi import current_scheduler

    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    for name in ("HOROLOG_DATABASE_URL", "HOROLOG_NAMESPACE"):
        monkeypatch.setenv(name, place[name])
    app: Any = import_module("fastapi_shop").app
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://x") as client,
    ):
        made = await client.post("/orders/7")
        assert (made.status_code, made.json()["status"]) == (201, "active")
        assert (await client.delete("/orders/7")).json() == {"status": "cancelled"}
        assert (await client.delete("/orders/8")).status_code == 404
        with Scheduler(place["HOROLOG_DATABASE_URL"], namespace=place["HOROLOG_NAMESPACE"]) as kept:
            assert kept.job("bill-7").status == "cancelled"

    class Bare:
        app = type("App", (), {"state": object()})()

    with pytest.raises(InvalidSetting, match="lifespan=scheduling"):
        current_scheduler(Bare())  # pyright: ignore[reportArgumentType]


def test_the_documents_on_frameworks_show_what_the_examples_do() -> None:
    for name in ("django", "fastapi", "cron", "apscheduler", "celery-beat"):
        text = (EXAMPLES.parent / "docs" / "integrations" / f"{name}.md").read_text()
        for shown in re.findall(r"examples/(\w+\.py)", text):
            assert (EXAMPLES / shown).exists()
        for piece in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            compile(piece, name, "exec")
