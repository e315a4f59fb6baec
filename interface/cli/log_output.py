"""What a long-running process says about itself: a line each on stderr, or JSON lines.

A JSON line has what was given as ``extra=`` and, where a handler logs, the run it belongs to.
"""

import json
import logging
import sys
from datetime import UTC, datetime

from horolog.application.worker.current import current_run


def log_to_stderr(*, level: str, as_json: bool) -> None:
    """Directs the process's log, from ``level`` ("INFO", …) on, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLine() if as_json else _Line())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # What drivers say about each lost connection is said again, in our words, by the loops.
    for name in ("psycopg.pool", "nats", "asyncio"):
        logging.getLogger(name).setLevel(max(root.level, logging.ERROR))


_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest is what somebody gave as ``extra=``."""


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).astimezone()
        words = f"{moment.isoformat(timespec='milliseconds')} {record.levelname:<7} "
        words += f"{record.name} {record.getMessage()}"
        return f"{words}\n{self.formatException(record.exc_info)}" if record.exc_info else words


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _USUAL}
        if (run := current_run.get()) is not None:
            line |= {"run": run.key, "attempt": run.attempt, "job": str(run.job_id)}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
