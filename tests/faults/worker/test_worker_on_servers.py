"""A worker on real servers: what is repeated, invented, taken away or restarted under it."""

import asyncio
import time
from typing import Any

import pytest

from horolog.domain.retry import Retry
from horolog.infrastructure.nats.connection import connect
from horolog.interface.worker import Worker

AT_ONCE = Retry(base=0.0, jitter=0.0)


@pytest.fixture
def worker(leader: Any) -> Worker:
    """Handlers that take effect in a table."""
    worker = Worker()
    effect = f"INSERT INTO {leader.namespace}.effects (key) VALUES (%s)"

    @worker.handles("def")
    def in_thread(run: Any) -> None:
        leader.execute(effect.replace(leader.namespace, ":schema"), (run.key,))

    @worker.handles("transactional", transactional=True)
    async def in_transaction(run: Any) -> None:
        await run.connection.execute(effect, (run.key,))

    @worker.handles("transactional-def", transactional=True)
    def in_transaction_in_thread(run: Any) -> None:
        run.connection.execute(effect, (run.key,))

    @worker.handles("counts")
    async def counts(run: Any) -> int:
        return (run.last_result or 0) + 1

    @worker.handles("raises")
    async def raises(run: Any, text: str, times: int = 1) -> None:
        raise RuntimeError(text.encode().decode("unicode_escape") * times)

    return worker


async def test_two_workers_and_every_message_twice_take_effect_once(
    leader: Any, working: Any, worker: Worker
) -> None:
    async with working(worker), working(worker):
        everything = list[Any]()
        for name in ("def", "transactional", "transactional-def"):
            _, runs = leader.claim(leader.register(name), 60)
            await leader.publish(runs, per_message=7)
            await leader.publish(runs, per_message=5)
            everything += [run.occurrence for run in runs]
        await leader.until_all(everything, "succeeded")
    assert leader.effects() == {str(key): 1 for key in everything}
    assert [event.error for key in everything for event in leader.events(key, "failed")] == []
    assert {tuple(leader.topics(key)) for key in everything} == {
        ("claimed", "attempted", "succeeded")
    }


@pytest.mark.parametrize("name", ["transactional", "transactional-def"])
async def test_the_effect_of_a_refused_success_is_rolled_back(
    leader: Any, working: Any, name: str
) -> None:
    worker, gate = Worker(), asyncio.Event()
    effect = f"INSERT INTO {leader.namespace}.effects (key) VALUES (%s)"

    def given_up(key: str) -> None:
        leader.execute("UPDATE :schema.next_runs SET due_at = now() WHERE id = %s", (key,))
        leader.lose_running()

    @worker.handles("transactional", transactional=True)
    async def in_transaction(run: Any) -> None:
        await run.connection.execute(effect, (run.key,))
        await asyncio.to_thread(given_up, run.key)
        gate.set()

    @worker.handles("transactional-def", transactional=True)
    def in_thread(run: Any) -> None:
        run.connection.execute(effect, (run.key,))
        given_up(run.key)

    async with working(worker):
        (key,) = await leader.fire(leader.register(name, retry=Retry(max_attempts=1)))
        await leader.until(lambda: leader.states_of([key]) == {"dead": 1}, "dead", look=False)
    assert leader.topics(key) == ["claimed", "attempted", "lost", "dead_lettered"]
    assert leader.effects() == {}
    assert leader.counters()["late_outcomes_refused"] == 1


@pytest.mark.parametrize("name", ["transactional", "transactional-def"])
async def test_a_transaction_that_the_handler_left_broken_is_a_failure(
    leader: Any, working: Any, name: str
) -> None:
    worker = Worker()
    effect = f"INSERT INTO {leader.namespace}.effects (key) VALUES (%s)"

    @worker.handles("transactional", transactional=True)
    async def swallows(run: Any) -> None:
        await run.connection.execute(effect, (run.key,))
        try:
            await run.connection.execute("SELECT nonsense")
        except Exception:  # noqa: BLE001 - what this test is about
            return

    @worker.handles("transactional-def", transactional=True)
    def commits(run: Any) -> None:
        run.connection.execute(effect, (run.key,))
        run.connection.commit()

    async with working(worker):
        (key,) = await leader.fire(leader.register(name, retry=Retry(max_attempts=1)))
        await leader.until_all([key], "dead")
    assert leader.effects() == {}


async def test_a_deleted_consumer_or_stream_is_made_again(
    leader: Any, working: Any, worker: Worker
) -> None:
    client, jetstream = await connect(leader.nats_url)
    try:
        async with working(worker, ack_wait_s=1.0):
            job = leader.register("transactional")
            job, runs = leader.claim(job)
            await leader.publish(runs)
            await leader.until_all([runs[0].occurrence], "succeeded")
            await jetstream.delete_consumer(f"{leader.namespace}_ready", "default")
            job, runs = leader.claim(job)
            await jetstream.publish(f"{leader.namespace}.ready.default", leader.encoded(runs))
            await leader.until_all([runs[0].occurrence], "succeeded", look=False)
            await jetstream.delete_stream(f"{leader.namespace}_ready")
            job, runs = leader.claim(job)
            await leader.publish(runs)
            await leader.until_all([runs[0].occurrence], "succeeded", look=False)
    finally:
        await client.close()


async def test_a_queue_that_appears_later_is_taken_from_and_others_can_be_left_out(
    leader: Any, working: Any
) -> None:
    everything, only = Worker(), Worker(queues=["billing"])
    seen: list[tuple[str, str]] = []
    for name, worker in (("everything", everything), ("only", only)):

        @worker.handles("work")
        async def work(run: Any, queue: str, name: str = name) -> None:
            seen.append((name, queue))

    async with working(only):
        mail = await leader.fire(leader.register("work", {"queue": "mail"}, queue="mail"))
        bill = await leader.fire(leader.register("work", {"queue": "billing"}, queue="billing"))
        await leader.until_all(bill, "succeeded", look=False)
        assert leader.states_of(mail) == {"claimed": 1}
    async with working(everything):
        await leader.until_all(mail, "succeeded", look=False)
        late = await leader.fire(leader.register("work", {"queue": "late"}, queue="late"))
        await leader.until_all(late, "succeeded", look=False, within_s=5)
    assert seen == [("only", "billing"), ("everything", "mail"), ("everything", "late")]


@pytest.mark.parametrize(
    ("text", "times"), [("a\\x00b", 1), ("a\\ud800b", 1), ("x", 5_000_000), ("\\x00\\udcff", 999)]
)
async def test_an_error_that_postgres_cannot_store_ends_its_run_all_the_same(
    leader: Any, working: Any, worker: Worker, text: str, times: int
) -> None:
    async with working(worker):
        job = leader.register("raises", {"text": text, "times": times}, retry=Retry(max_attempts=1))
        (key,) = await leader.fire(job)
        await leader.until_all([key], "dead", look=False)
    (letter,) = leader.execute("SELECT error FROM :schema.dead_letters WHERE id = %s", (key,))
    assert letter[0].startswith("RuntimeError: ")


async def test_strangers_in_the_queue_harm_nothing_and_are_counted(
    leader: Any, working: Any, worker: Worker
) -> None:
    _, runs = leader.claim(leader.register("transactional"), 2)
    invented = runs[1].model_copy(update={"occurrence": runs[1].job})
    async with working(worker):
        await leader.publish_raw("default", [b"", b"\xff", b'{"format":1}'])
        await leader.publish([invented])
        await leader.publish(runs)
        await leader.until_all([run.occurrence for run in runs], "succeeded", look=False)
        await leader.until(
            lambda: leader.counters().get("strange_messages") == 4, "counted", look=False
        )


async def test_a_long_run_keeps_its_lease_though_it_blocks_the_loop(
    leader: Any, working: Any
) -> None:
    worker = Worker()

    @worker.handles("rude")
    async def rude(run: Any) -> None:
        time.sleep(2.5)  # noqa: ASYNC251 - what this test is about

    async with working(worker, lease_s=0.9, heartbeat_s=0.3, ack_wait_s=1.0):
        (key,) = await leader.fire(leader.register("rude"))
        await leader.until_all([key], "succeeded")
    assert leader.topics(key) == ["claimed", "attempted", "succeeded"]


async def test_the_last_result_comes_from_the_run_before(
    leader: Any, working: Any, worker: Worker
) -> None:
    job = leader.register("counts")
    async with working(worker):
        for expected in (1, 2, 3):
            job, runs = leader.claim(job)
            await leader.publish(runs)
            await leader.until_all([runs[0].occurrence], "succeeded", look=False)
            assert leader.events(runs[0].occurrence, "succeeded")[0].result == expected


async def test_a_worker_tells_that_it_lives_and_what_it_can_do(
    leader: Any, working: Any, worker: Worker
) -> None:
    async with working(worker):
        await leader.until(
            lambda: leader.execute("SELECT role, details FROM :schema.instances") != [],
            "announced",
            look=False,
        )
        ((role, details),) = leader.execute("SELECT role, details FROM :schema.instances")
        assert (role, details["handlers"]) == ("worker", sorted(worker.by_name))
    assert leader.execute("SELECT * FROM :schema.instances") == []
