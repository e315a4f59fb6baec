"""Writes the jobs of an APScheduler 3 as JSON, for `horolog import apscheduler`.

    python export.py myapp.scheduling:scheduler > jobs.json    # a scheduler in your code
    python export.py --url sqlite:///jobs.sqlite > jobs.json   # the table of a SQLAlchemyJobStore

This runs in your environment, with your APScheduler: a job store holds pickles, and only your own
process may open those. It starts nothing, runs nothing and changes nothing. Horolog reads the JSON.
(`horolog import apscheduler --exporter` prints this file.)
"""

import argparse
import importlib
import json
import os
import pickle
import sys
from typing import Any, Dict, Iterator  # noqa: UP035 - it runs under whatever Python you have

KEPT = ("id", "name", "func", "coalesce", "max_instances", "misfire_grace_time", "executor")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scheduler", nargs="?", metavar="MODULE:SCHEDULER")
    parser.add_argument("--url", help="of the database of a SQLAlchemyJobStore")
    parser.add_argument("--table", default="apscheduler_jobs")
    stated = parser.parse_args()
    if bool(stated.scheduler) == bool(stated.url):
        parser.error("name a scheduler, or the --url of a job store")
    sys.path.insert(0, os.getcwd())
    states = from_store(stated.url, stated.table) if stated.url else from_code(stated.scheduler)
    document = {"horolog": "apscheduler.1", "jobs": [plain(state) for state in states]}
    print(json.dumps(document, indent=1))


def from_code(place: str) -> "Iterator[Dict[str, Any]]":  # noqa: UP006
    module, _, name = place.partition(":")
    scheduler: Any = getattr(importlib.import_module(module), name or "scheduler")
    for job in scheduler.get_jobs():
        state = {name: getattr(job, name, None) for name in (*KEPT, "args", "kwargs", "trigger")}
        state["func"] = job.func_ref
        if hasattr(job, "next_run_time"):  # else its scheduler was not started
            state["next_run_time"] = job.next_run_time
        yield state


def from_store(url: str, table: str) -> "Iterator[Dict[str, Any]]":  # noqa: UP006
    # Not through the job store's own methods: they delete what they cannot import.
    sqlalchemy: Any = importlib.import_module("sqlalchemy")
    engine = sqlalchemy.create_engine(url)
    found = sqlalchemy.table(table, sqlalchemy.column("id"), sqlalchemy.column("job_state"))
    with engine.connect() as connection:
        rows = connection.execute(sqlalchemy.select(found).order_by(found.c.id)).fetchall()
    engine.dispose()
    for identity, state in rows:
        try:
            yield pickle.loads(state)  # noqa: S301 - your own store, in your own process
        except Exception as error:  # noqa: BLE001 - told, and the others go on
            yield {"id": identity, "error": f"{type(error).__name__}: {error}"}


def plain(state: "Dict[str, Any]") -> "Dict[str, Any]":  # noqa: UP006
    if "error" in state:
        return state
    job = {name: state.get(name) for name in KEPT}
    job["paused"] = "next_run_time" in state and state["next_run_time"] is None
    job["trigger"] = trigger(state["trigger"])
    try:
        job["args"] = json.loads(json.dumps(list(state.get("args") or ())))
        job["kwargs"] = json.loads(json.dumps(dict(state.get("kwargs") or {})))
    except (TypeError, ValueError) as error:
        job["error"] = f"its arguments are no JSON: {error}"
    return job


def trigger(found: Any) -> "Dict[str, Any]":  # noqa: UP006
    kind = type(found).__name__
    said: Any = {"kind": kind}
    if kind == "CronTrigger":
        said["fields"] = {field.name: str(field) for field in found.fields}
    elif kind == "IntervalTrigger":
        said["seconds"] = found.interval.total_seconds()
    elif kind == "DateTrigger":
        said["at"] = found.run_date.isoformat()
    else:
        said["text"] = str(found)
    for name in ("start_date", "end_date"):
        moment = getattr(found, name, None)
        said[name] = None if moment is None else moment.isoformat()
    zone = getattr(found, "timezone", None)
    said["zone"] = None if zone is None else str(zone)
    said["jitter"] = getattr(found, "jitter", None)
    return said


if __name__ == "__main__":
    main()
