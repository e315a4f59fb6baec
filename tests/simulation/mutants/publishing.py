"""From the claim to the ready queue, and what the leader reads of the index."""

from contextlib import ExitStack
from typing import Any

from tests.simulation.mutants.mutant import Mutants, gives, method

from horolog.application.scanner.claiming import Claiming
from horolog.application.scanner.looking import Looking
from horolog.application.scanner.outbox import Outbox
from horolog.application.scanner.progress import Progress
from horolog.application.scanner.publishing import Publishing
from horolog.application.scanner.republishing import Republishing
from horolog.application.scanner.sweep import Sweep

PUBLISHING = Mutants()


@PUBLISHING.mutant("claims are published before the log has accepted them")
def _(stack: ExitStack) -> None:
    append = Claiming.append

    async def eager(self: Any, proposals: Any, tokens: Any) -> None:
        for proposal in proposals:
            for claimed in proposal.claimed:
                self._outbox.add(proposal.job, claimed, batch=None)
        await append(self, proposals, tokens)

    method(stack, Claiming, "append", eager)


@PUBLISHING.mutant("the publishing position passes what is not confirmed", "failover")
def _(stack: ExitStack) -> None:
    def passing(self: Any, number: int) -> None:
        batches = self._batches.get(number)
        while batches:
            self.marks[number] = batches.popleft().position

    method(stack, Progress, "_pass", passing)


@PUBLISHING.mutant(
    "a takeover publishes the first page of what was left, and forgets the rest", "failover"
)
def _(stack: ExitStack) -> None:
    step = Republishing.step

    async def one_page(self: Any) -> float | None:
        rounds = list(self._rounds)
        pause_s = await step(self)
        if rounds and rounds[0] in self._rounds:
            self._rounds.remove(rounds[0])
            self._finish(rounds[0])
        return pause_s

    method(stack, Republishing, "step", one_page)


@PUBLISHING.mutant("a claim whose window ends is published again without a look at the queue")
def _(stack: ExitStack) -> None:
    async def not_there(self: Any, places: Any) -> list[bool]:
        return [False for _ in places]

    method(stack, Looking, "_there", not_there)


@PUBLISHING.mutant("a claim whose window ends is never published again")
def _(stack: ExitStack) -> None:
    async def there(self: Any, places: Any) -> list[bool]:
        return [True for _ in places]

    async def no_strangers(self: Any) -> bool:
        return False

    method(stack, Looking, "_there", there)
    method(stack, Looking, "_scan", no_strangers)


@PUBLISHING.mutant("the sweep reads the index once, and never from the beginning again")
def _(stack: ExitStack) -> None:
    method(stack, Sweep, "_start_pass", gives(None))
    method(stack, Sweep, "reload", gives(None))


@PUBLISHING.mutant("what is refused as a conflict is dropped")
def _(stack: ExitStack) -> None:
    method(stack, Claiming, "_conflict", gives(None))
    method(stack, Sweep, "_start_pass", gives(None))


@PUBLISHING.mutant(
    "a message of which the queue cannot say whether it holds it is let go", "the queue"
)
def _(stack: ExitStack) -> None:
    settle = Publishing._settle  # pyright: ignore[reportPrivateUsage]

    async def letting_go(self: Any, messages: Any, receipts: Any) -> Any:
        with ExitStack() as meanwhile:
            method(meanwhile, Outbox, "put_back", gives(None))
            return await settle(self, messages, receipts)

    method(stack, Publishing, "_settle", letting_go)
