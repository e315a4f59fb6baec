"""What should have run: an account of its own, from the user's orders and the witness's notes.

Nothing here is decided by the domain's code. The fire times are counted out anew, the orders are
those that the user gave and was told of, and the log is read as JSON, for what it claims to have
happened. Then each fire time must have run once or must have a reason that holds; each run must
have ended as its handler ended; and each order must have had its effect.
"""

from typing import TYPE_CHECKING

from tests.simulation.model.account import Account
from tests.simulation.model.alerts import check_alerts
from tests.simulation.model.deadlines import check_deadlines
from tests.simulation.model.fire_times import check_fire_times
from tests.simulation.model.given import check_given
from tests.simulation.model.limits import check_limits, check_overlaps
from tests.simulation.model.orders import (
    check_index,
    check_orders,
    check_pauses,
    check_requests,
)
from tests.simulation.model.publishing import check_publishing
from tests.simulation.model.reading import read
from tests.simulation.model.runs import check_run

if TYPE_CHECKING:
    from tests.simulation.world import World


def check(world: "World") -> list[str]:
    """What does not agree in a world that is at rest; nothing where all is well."""
    account = Account(world)
    read(account)
    for identity, job in account.jobs.items():
        check_fire_times(account, identity, job)
    for identity, life in account.lives.items():
        check_run(account, identity, life)
    check_limits(account)
    check_overlaps(account)
    check_orders(account)
    check_pauses(account)
    check_requests(account)
    check_index(account)
    check_publishing(account)
    check_given(account)
    check_deadlines(account)
    check_alerts(account)
    return account.found
