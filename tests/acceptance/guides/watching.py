"""The guides to being told: alerts, and metrics and traces by OTLP."""

import json

from tests.acceptance.conftest import eventually
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.granted import a_job, free_port, programs
from tests.acceptance.guides.guide import Guide, Says

JOBS = """
from horolog import Run, Worker

worker = Worker()


@worker.handles("report")
def report(run: Run) -> str:
    return "written"
"""

TRACED = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 horolog scanner --otel"


def of_alerts(desk: Desk) -> None:
    desk.write("page", f'#!/bin/sh\necho "$@" > paged\ncat >> {desk.terminal.folder}/paged\n')
    pager = desk.terminal.folder / "page"
    pager.chmod(0o755)
    desk.words |= {
        "https://hooks.example.com": desk.listener(),
        "/usr/local/bin/page": str(pager),
    }


def after_alerts(desk: Desk) -> None:
    """The notice is what the guide shows."""
    (shape,) = programs("docs/alerts.md", "json")
    ((path, notice),) = desk.received
    assert path == "/T0/key"
    told = json.loads(notice)
    assert told.keys() == json.loads(shape).keys()
    assert (told["state"], told["owner"]) == ("test", "team-billing")


def of_observability(desk: Desk) -> None:
    a_job(desk)
    desk.write("jobs.py", JOBS)
    desk.terminal.environment["OTEL_METRIC_EXPORT_INTERVAL"] = "500"
    desk.words |= {
        "9464": str(free_port()), "localhost:9464": "127.0.0.1:9464", "9465": str(free_port()),
        "http://localhost:4318": desk.listener(),
    }  # fmt: skip
    desk.words["localhost:9464"] = f"127.0.0.1:{desk.words['9464']}"


def after_observability(desk: Desk) -> None:
    """Both came by OTLP: metrics, and spans once something ran."""
    if desk.processes:
        with desk.scheduler() as scheduler:
            scheduler.trigger(scheduler.job("nightly").id)
        eventually(lambda: {"/v1/metrics", "/v1/traces"} <= {path for path, _ in desk.received})


ALERTS = Guide(
    "alerts", of_alerts,
    says={
        "horolog alert list": Says(("team-billing", "10 dead letters")),
        "horolog alert history": Says(("alert_rule.set",)),
        "horolog metrics": Says(("horolog_alerts",)),
    },
    then=after_alerts,
)  # fmt: skip

OBSERVABILITY = Guide(
    "observability", of_observability, then=after_observability,
    before={TRACED: lambda desk: desk.terminal.stop_all()},  # or they would take its runs
)  # fmt: skip
