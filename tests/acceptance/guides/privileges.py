"""The guide to roles: each login may do what its process does."""

import psycopg
from psycopg.conninfo import make_conninfo
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.following import put_in
from tests.acceptance.guides.guide import Guide
from tests.acceptance.shown import blocks


def of_privileges(desk: Desk) -> None:
    """The guide's names, each with the namespace in front: roles are the whole server's."""
    for kind in ("client", "scanner", "worker", "auditor", "owner"):
        desk.words[f"horolog_{kind}"] = f"{desk.namespace}_{kind}"
    for login in ("shop_web", "runner_1", "deployer"):
        desk.words[login] = f"{desk.namespace}_{login}"


def logins(desk: Desk) -> None:
    """The guide's SQL, and what the logins then may do."""
    (statements,) = [
        text for language, text in blocks("docs/least-privilege.md") if language == "sql"
    ]
    with psycopg.connect(desk.database_url, autocommit=True) as owner:
        owner.execute(put_in(desk, statements).encode())
    everybody = desk.database_url
    register = ("job", "register", "ping", "--every", "86400")
    for login, may in (("shop_web", True), ("runner_1", False)):
        desk.terminal.environment["HOROLOG_DATABASE_URL"] = make_conninfo(
            everybody, user=desk.words[login]
        )
        answer = desk.ask(*register)
        assert (answer.status == 0) == may, (login, answer)
    desk.terminal.environment["HOROLOG_DATABASE_URL"] = everybody


def after_privileges(desk: Desk) -> None:
    """A second time changes nothing; the users are there, and the subject of alerts."""
    assert desk.ask("roles", "--apply").status == 0
    users = (desk.terminal.folder / "horolog-users.conf").read_text()
    for word in (f"{desk.namespace}_scanner", f"{desk.namespace}_worker", "alerts.team"):
        assert word in users


LEAST_PRIVILEGE = Guide(
    "least-privilege", of_privileges,
    before={"horolog roles --nats --alert-subject alerts.team > horolog-users.conf": logins},
    then=after_privileges,
)  # fmt: skip
