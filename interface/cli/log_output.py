"""What a long-running process says about itself: a line each on stderr, or JSON lines."""

import json
import logging
import sys
from datetime import UTC, datetime


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
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
