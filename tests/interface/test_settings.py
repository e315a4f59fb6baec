"""What a process connects to: argument before environment before embedded servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from horolog import InvalidSetting, QueueUnavailable, Scheduler, Settings, StoreUnavailable
from horolog.infrastructure.postgres.database import Database

if TYPE_CHECKING:
    from horolog.infrastructure.embedded import EmbeddedServers

POSTGRES = "postgresql://user:geheim@db.example:5432/jobs"


def test_an_argument_comes_before_the_environment() -> None:
    environment = {
        "HOROLOG_DATABASE_URL": POSTGRES,
        "HOROLOG_NATS_URL": "nats://one:4222,nats://two:4222",
        "HOROLOG_HOME": "/somewhere",
        "HOROLOG_NAMESPACE": "billing",
    }
    read = Settings.read(environment=environment)
    assert read.database_url() == POSTGRES
    assert read.nats_url() == "nats://one:4222,nats://two:4222"
    assert (read.home, read.namespace) == (Path("/somewhere"), "billing")

    given = Settings.read(
        "host=/tmp dbname=other",
        nats_url="nats://three:4222",
        namespace="shipping",
        home="elsewhere",
        actor="ann",
        environment=environment,
    )
    assert given.database_url() == "host=/tmp dbname=other"
    assert given.nats_url() == "nats://three:4222"
    assert (given.home, given.namespace, given.actor) == (Path("elsewhere"), "shipping", "ann")


def test_what_is_not_set_has_a_default_and_an_empty_variable_is_not_set() -> None:
    read = Settings.read(environment={"HOROLOG_NAMESPACE": "", "HOROLOG_HOME": ""})
    assert (read.namespace, read.home) == ("horolog", Path(".horolog"))
    user, _, host = read.actor.partition("@")
    assert user
    assert host


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"HOROLOG_DATABASE_URL": "mysql://u:geheim@db/x"}, "HOROLOG_DATABASE_URL='mysql://u:"),
        ({"HOROLOG_DATABASE_URL": "db.example"}, "begins with postgresql://"),
        ({"HOROLOG_DATABASE_URL": "postgresql://u:geheim@db:port/x"}, "HOROLOG_DATABASE_URL="),
        ({"HOROLOG_NATS_URL": "http://u:geheim@queue"}, "HOROLOG_NATS_URL='http://u:"),
        ({"HOROLOG_NATS_URL": "nats://a:4222,b:4222"}, "HOROLOG_NATS_URL='b:4222'"),
        ({"HOROLOG_NAMESPACE": "Invoices"}, "HOROLOG_NAMESPACE='Invoices'"),
        ({"HOROLOG_NAMESPACE": 'x"; DROP'}, "HOROLOG_NAMESPACE="),
        ({"HOROLOG_NAMESPACE": "pg_jobs"}, "Postgres keeps pg_"),
        ({"HOROLOG_NAMESPACE": "information_schema"}, "Postgres keeps pg_"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_and_no_password_is_shown(
    environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Settings.read(environment=environment)
    assert message in str(refused.value)
    assert "geheim" not in str(refused.value)


def test_the_embedded_servers_are_found_through_their_home(servers: EmbeddedServers) -> None:
    read = Settings.read(home=servers.home, environment={})
    found = servers.find()
    assert found is not None
    assert (read.database_url(), read.nats_url()) == (found.database_url, found.nats_url)


def test_where_no_server_runs_it_is_said_what_to_do(tmp_path: Path) -> None:
    read = Settings.read(home=tmp_path / "none", environment={})
    with pytest.raises(StoreUnavailable, match="run `horolog dev`, or set HOROLOG_DATABASE_URL"):
        read.database_url()
    with pytest.raises(QueueUnavailable, match="run `horolog dev`, or set HOROLOG_NATS_URL"):
        read.nats_url()
    with pytest.raises(StoreUnavailable, match="run `horolog dev`"), Scheduler(settings=read):
        pass


@pytest.mark.parametrize(
    "url",
    [
        "app:5ecret@host/db", "5ecret@host", "postgresql://app:5ecret#x@host/db",
        "postgresql://app:5%ecret@host/db", "postgresql://app:x/5ecret@host/db",
        "postgresql://app:[5ecret@host/db", "postgresql://app:x?5ecret@host/db",
        "host=h password='5ecret' 5ecret", "postgresql://h/d?password=5ecret&5ecret",
        "host=h password='x 5ecret", "host=h password=x 5ecret",
    ],
)  # fmt: skip
def test_no_part_of_a_password_is_told_where_the_database_url_is_wrong(url: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Database(Settings.read(database_url=url, environment={}).database_url(), "horolog")
    assert "5ecret" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("url", ["http://5ecret@host", "nats://5ecret@[::1", "app:5ecret@host"])
def test_no_token_is_told_where_the_url_of_nats_is_wrong(url: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Settings.read(nats_url=url, environment={})
    assert "5ecret" not in str(refused.value)
