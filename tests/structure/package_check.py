"""`make package-check`: the wheel as somebody gets it, in places of its own.

    nothing but `horolog` goes into site-packages; it is typed; manual pages are there
    `pipx run` of the wheel works, without anything installed before
    it installs and answers on each Python that the classifiers name and that this machine has

Needs the package index, as any installation does.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="horolog-package-") as place:
        folder = Path(place)
        wheel = built(folder)
        look_into(wheel)
        tools = venv(folder / "tools", sys.executable)
        run(tools, "-m", "pip", "install", "-q", "pipx")
        told = subprocess.run(
            [str(tools), "-m", "pipx", "run", "--spec", str(wheel), "horolog", "--version"],
            env=os.environ | {"HOME": place, "PIPX_HOME": str(folder / "pipx")},
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        print(f"pipx run: {told.stdout.strip()}")
        for version in named_versions():
            print(f"Python {version}: {on_python(folder, version, wheel)}")
    return 0


def built(folder: Path) -> Path:
    """The wheel, made from the sdist, made from what git has (and the manual pages)."""
    source = folder / "source"
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    for name in filter(None, files):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    run(Path(sys.executable), "-m", "horolog.interface.cli.manual", str(source / "man"))
    tools = venv(folder / "builder", sys.executable)
    run(tools, "-m", "pip", "install", "-q", "build")
    run(tools, "-m", "build", "--outdir", str(folder / "dist"), str(source))
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def look_into(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert all(re.fullmatch(r"horolog|horolog-.*\.(dist-info|data)", name) for name in top), top
    assert "horolog/py.typed" in names
    manual = [name for name in names if "share/man/man1/" in name]
    assert any(name.endswith("horolog-job-register.1") for name in manual), manual
    layers = {name.split("/")[1] for name in names if name.startswith("horolog/")}
    assert {"domain", "projections", "application", "infrastructure", "interface"} <= layers
    assert any(name.endswith("_log.sql") for name in names)
    print(f"{wheel.name}: {len(names)} files, {len(manual)} manual pages")


def named_versions() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    return [str(version) for version in found]


def on_python(folder: Path, version: str, wheel: Path) -> str:
    """What the command line says there, from the schedule preview: no server, but every layer."""
    uv = shutil.which("uv")
    program = shutil.which(f"python{version}")
    if uv is None and (program is None or not answers(program)):
        return "is not on this machine"
    place = folder / f"python{version}"
    if uv is not None:
        made = [uv, "venv", "-q", "--python", version, str(place)]
        if subprocess.run(made, capture_output=True, check=False).returncode:
            return "is not on this machine, and cannot be fetched"
        python = place / "bin" / "python"
        subprocess.run(
            [uv, "pip", "install", "-q", "--python", str(python), str(wheel)], check=True
        )
    else:
        assert program is not None
        python = venv(place, program)
        run(python, "-m", "pip", "install", "-q", str(wheel))
    asked = ["schedule", "preview", "--cron", "0 2 * * *", "--zone", "Europe/Berlin", "-n", "1"]
    done = subprocess.run(
        [str(python.with_name("horolog")), *asked, "--json"],
        capture_output=True, text=True, check=True, cwd=folder,
    )  # fmt: skip
    assert len(json.loads(done.stdout)) == 1
    run(
        python,
        "-W",
        "error",
        "-c",
        "import horolog; [getattr(horolog, n) for n in horolog.__all__]",
    )
    return "installs, imports without a warning, answers"


def answers(program: str) -> bool:
    """Whether it runs: a shim of a version manager may stand for nothing."""
    return subprocess.run([program, "-V"], capture_output=True, check=False).returncode == 0


def venv(place: Path, program: str) -> Path:
    run(Path(program), "-m", "venv", str(place))
    return place / "bin" / "python"


def run(python: Path, *arguments: str) -> None:
    subprocess.run([str(python), *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
