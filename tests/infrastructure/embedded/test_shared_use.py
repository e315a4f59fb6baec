"""Who uses a home's servers together: the last who leaves stops them, and nobody before."""

from pathlib import Path

import pytest

from horolog.infrastructure.embedded import EmbeddedHomeFailed, EmbeddedServers
from horolog.infrastructure.embedded.shared_use import in_use


def test_the_last_who_leaves_stops_the_servers(tmp_path: Path) -> None:
    home = tmp_path / "home"
    look = EmbeddedServers(home)
    with in_use(home):
        with in_use(home):
            assert look.find() is not None
        assert look.find() is not None, "somebody is still there"
    assert look.find() is None


def test_only_what_is_wanted_is_started(tmp_path: Path) -> None:
    with in_use(tmp_path / "home", postgres=False) as servers:
        found = servers.find()
        assert found is None or "nats" in found.nats_url


def test_a_home_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(EmbeddedHomeFailed, match="not a directory"),
        in_use(tmp_path / "file"),
    ):
        pass
