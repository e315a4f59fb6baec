"""Three NATS servers that keep each stream three times, on loopback, to be killed one by one."""

import secrets
import subprocess
from pathlib import Path

from horolog.infrastructure.embedded.accounts import ourselves
from horolog.infrastructure.embedded.nats_server import free_port
from horolog.infrastructure.embedded.wheels import nats_program

NODES = 3

_CONFIGURATION = """
server_name: "node{number}"
listen: "127.0.0.1:{port}"
authorization {{ user: "test", password: "{password}" }}
jetstream {{ store_dir: "jetstream{number}", max_memory_store: 64MB, max_file_store: 1GB }}
cluster {{
  name: "test"
  listen: "127.0.0.1:{route}"
  authorization {{ user: "route", password: "{password}", timeout: 5 }}
  routes: [{routes}]
}}
"""


class NatsCluster:
    """Started by :meth:`start`; every node is gone after :meth:`close`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._password = secrets.token_hex(8)
        self._ports = [free_port() for _ in range(NODES)]
        self._routes = [free_port() for _ in range(NODES)]
        self._nodes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """All nodes, as HOROLOG_NATS_URL takes them."""
        return ",".join(f"nats://test:{self._password}@127.0.0.1:{port}" for port in self._ports)

    def start(self) -> None:
        for number in range(NODES):
            self.start_node(number)

    def start_node(self, number: int) -> None:
        routes = ", ".join(
            f'"nats://route:{self._password}@127.0.0.1:{port}"'
            for other, port in enumerate(self._routes)
            if other != number
        )
        file = self._folder / f"node{number}.conf"
        file.write_text(
            _CONFIGURATION.format(
                number=number, port=self._ports[number], route=self._routes[number],
                password=self._password, routes=routes,
            )
        )  # fmt: skip
        with (self._folder / f"node{number}.log").open("ab") as said:
            self._nodes[number] = subprocess.Popen(
                [nats_program(ourselves()), "--config", file],
                cwd=self._folder, stdout=said, stderr=said,
            )  # fmt: skip

    def kill_node(self, name: str) -> None:
        """SIGKILL, as a machine that goes dark; ``name`` is "node0" and so on."""
        node = self._nodes.pop(int(name.removeprefix("node")))
        node.kill()
        node.wait()

    def close(self) -> None:
        for name in [f"node{number}" for number in self._nodes]:
            self.kill_node(name)
