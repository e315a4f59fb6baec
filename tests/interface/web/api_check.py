"""`make api-check`: schemathesis against a real server on servers of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.interface.web.conftest import served

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.privacy.master_keys import new_master_key
from horolog.interface.settings import Settings

CONFIG = Path(__file__).parent / "schemathesis.toml"


def main(examples: str) -> int:
    with tempfile.TemporaryDirectory(prefix="horolog-api-") as folder:
        servers = EmbeddedServers(Path(folder) / "home")
        try:
            found = servers.ensure()
            database = Database(found.database_url, "horolog")
            migrate(database)
            database.close()
            settings = Settings.read(
                found.database_url,
                nats_url=found.nats_url,
                home=folder,
                environment={"HOROLOG_MASTER_KEY": new_master_key()},  # jobs may have subjects
            )
            with served(settings) as web:
                document = f"{web.address}/api/v1/openapi.json"
                options = ["--wait-for-schema", "30", "--continue-on-failure", "--no-color"]
                options += [
                    "--phases",
                    "examples,coverage,fuzzing,stateful",
                    "--max-examples",
                    examples,
                ]
                program = [str(Path(sys.executable).with_name("schemathesis"))]
                return subprocess.call(
                    [*program, "--config-file", str(CONFIG), "run", document, *options]
                )
        finally:
            servers.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "20"))
