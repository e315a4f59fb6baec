"""The deployment files say what the program understands, and give it the time that it needs."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner

from horolog.application.worker.settings import WorkerSettings
from horolog.infrastructure.embedded.accounts import ourselves
from horolog.infrastructure.embedded.wheels import nats_program
from horolog.interface.cli.main import cli

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())


def kubernetes() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "horolog.yaml").read_text()))


def unit(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", path.read_text(), re.MULTILINE))


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of ours, by where it stands."""
    for name, service in compose()["services"].items():
        if service["image"] == "horolog":
            yield f"compose: {name}", service["command"]
    for document in kubernetes():
        for container in containers(document):
            yield f"kubernetes: {container['name']}", container["args"]
    for path in UNITS:
        program, *arguments = shlex.split(unit(path)["ExecStart"])
        assert program.endswith("/horolog")
        yield path.name, arguments


def containers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    template = document.get("spec", {}).get("template", {})
    return cast("list[dict[str, Any]]", template.get("spec", {}).get("containers", []))


@cache
def help_of(command: str) -> str:
    answer = CliRunner().invoke(cli, [command, "--help"])
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.mark.parametrize(
    ("where", "arguments"), list(commands()), ids=lambda value: str(value)[:40]
)
def test_each_command_and_option_exists(where: str, arguments: list[str]) -> None:
    options = [argument for argument in arguments if argument.startswith("--")]
    said = help_of(arguments[0])
    assert [option for option in options if f"{option} " not in said] == [], where


def test_each_variable_is_read() -> None:
    said = " ".join(path.read_text() for path in [*DEPLOY.rglob("*.y*ml"), *DEPLOY.rglob("*.env")])
    read = " ".join(path.read_text() for path in (ROOT / "interface").rglob("*.py"))
    own = {"HOROLOG_WORKER"}  # the unit's own, in its command line
    assert {name for name in re.findall(r"HOROLOG_[A-Z_]+", said) if name not in read} <= own


def test_everybody_has_the_time_to_drain() -> None:
    needed = WorkerSettings().drain_grace_s
    for service in compose()["services"].values():
        if service["image"] == "horolog":
            assert float(service["stop_grace_period"].removesuffix("s")) > needed
    for document in kubernetes():
        if document["kind"] == "Deployment" and document["metadata"]["name"] != "horolog-web":
            assert document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > needed
    for path in UNITS:
        assert float(unit(path)["TimeoutStopSec"]) > needed


def test_probes_ask_where_the_process_answers() -> None:
    for document in kubernetes():
        for container in containers(document):
            if "livenessProbe" in container:
                port = container["ports"][0]["containerPort"]
                arguments = container["args"]
                assert arguments[arguments.index("--health-port") + 1] == str(port)
                assert container["livenessProbe"]["httpGet"]["port"] == "health"


def test_nats_understands_its_configuration(tmp_path: Path) -> None:
    text = compose()["configs"]["nats"]["content"].replace("${NATS_PASSWORD}", "5e3cret")
    assert "$" not in text
    (tmp_path / "nats.conf").write_text(text)
    program = nats_program(ourselves())
    done = subprocess.run(
        [program, "-t", "--config", tmp_path / "nats.conf", "--name", "nats1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_understands_the_unit(path: Path, tmp_path: Path) -> None:
    text = path.read_text().replace("/opt/horolog/bin/horolog", "/bin/true")
    instance = tmp_path / path.name.replace("@", "@1")
    instance.write_text(text.replace("User=horolog\n", ""))
    done = subprocess.run(
        ["systemd-analyze", "verify", instance], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if path.stem.split("@")[0] in line]
    assert [line for line in ours if "EnvironmentFile" not in line] == []
