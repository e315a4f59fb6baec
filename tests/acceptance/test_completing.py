"""What the command line does for whoever types: completes, names what is near, shows anew."""

import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from rich.console import Console
from tests.acceptance.conftest import Horolog

from horolog.interface.cli import manual, rendering, watch
from horolog.interface.cli.main import COMPLETE, cli, run
from horolog.interface.cli.rendering import Output
from horolog.interface.cli.shells import SHELLS


def test_keys_and_queues_are_completed_and_the_nearest_key_is_named(
    horolog: Horolog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("nightly-bill", "nightly-mail", "hourly"):
        horolog.within(
            "job", "register", "echo", "--every", "9999", "--key", key, "--queue", "slow"
        )
    for name, value in horolog.environment.items():
        monkeypatch.setenv(name, value)
    completes = ShellComplete(cli, {}, "horolog", COMPLETE)

    def completed(*words: str) -> list[str]:
        return [item.value for item in completes.get_completions(list(words[:-1]), words[-1])]

    assert completed("job", "pau") == ["pause"]
    assert completed("job", "pause", "night") == ["nightly-bill", "nightly-mail"]
    assert completed("occurrence", "list", "--job", "h") == ["hourly"]
    assert completed("queue", "limit", "") == ["slow"]
    horolog.within("job", "register", "echo", "--every", "9999", "--key", "acct:42, or b")
    monkeypatch.setenv("COMP_WORDBREAKS", " \t\n\"'><=;|&(:")
    for line, replaced in (
        ("horolog job pause hou", "hourly"),
        ("horolog job pause ac", r"acct:42,\ or\ b"),
        ("horolog job pause acct:", r"42,\ or\ b"),
        (r"horolog job pause acct:42,\ o", r"42,\ or\ b"),
        ('horolog job pause "acct:42, o', "acct:42, or b"),
        ("horolog job pau", "pause"),
    ):
        monkeypatch.setenv("COMP_WORDS", line)
        assert SHELLS["bash"](cli, {}, "horolog", COMPLETE).complete() == f"plain,{replaced}"
    assert completed("job", "pause", "--home", "/nowhere", "--database-url", "x", "h") == []

    refused = horolog.within("job", "pause", "nightly-bil", status=1)
    assert "did you mean nightly-bill" in refused.err
    refused = horolog.within("job", "pauze", "hourly", status=2)
    assert "did you mean pause" in refused.err

    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch, "sleep", sleep)
    shown = horolog.within("job", "list", "--watch", "0.5")
    assert shown.out.count("nightly-mail") == 2
    assert looks == [0.5, 0.5]
    assert (
        "leave out --json" in horolog.within("job", "list", "--watch", "1", "--json", status=2).err
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_reads_its_script(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert COMPLETE in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


def test_every_command_has_a_manual_page_that_roff_takes(tmp_path: Path) -> None:
    manual.main(str(tmp_path))
    found = {path.name for path in tmp_path.iterdir()}
    assert {"horolog.1", "horolog-job.1", "horolog-job-register.1", "horolog-web.1"} <= found
    page = (tmp_path / "horolog-job-register.1").read_text()
    assert ".B \\-\\-cron E" in page
    assert "Cron expression" in page
    for path in tmp_path.iterdir():
        unknown = re.findall(r"^[.'](?!TH |SH |B |TP$|PP$).*", path.read_text(), re.MULTILINE)
        assert not unknown, (path.name, unknown)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_table_fits_its_terminal_or_is_paragraphs(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    made = Console(file=shown, width=width, highlight=False, emoji=False, markup=False)
    monkeypatch.setattr(rendering, "console", lambda: made)
    row = ["x" * 36, "invoices.bill", "bill-ann", "active", "2026-11-30T19:52:37+00:00", "every 60"]
    columns = ["id", "name", "key", "status", "next run", "schedule"]
    Output(as_json=False).table(columns, [row, row], empty="none")
    lines = shown.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    whole = shown.getvalue()
    if width == 200:
        assert len(lines) == 4, "a table"
    if width <= 80:
        assert all(value in whole for value in row), "nothing is folded in a paragraph"
    assert whole.count("x" * 36) == 2
