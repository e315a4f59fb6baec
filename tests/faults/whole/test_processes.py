"""Scanners and workers that die, stop or come and go: every occurrence takes effect as promised."""

from tests.faults.system.account import account
from tests.faults.system.system import System


def test_a_worker_killed_in_the_middle_of_a_batch_costs_time_only(system: System) -> None:
    victim, other = system.start_worker(), system.start_worker()
    system.until_ready(victim, other, system.start_scanner())
    system.register(200, seconds=0.1)
    system.until(lambda: _running(system, victim.pid) >= 5, "the victim has a batch in its hands")
    victim.kill()
    system.until_done()
    found = account(system)
    assert found.problems == []
    assert found.report.lost >= 1


def test_what_a_killed_scanner_committed_is_published_by_its_successor(system: System) -> None:
    """Killed between its commit and its publish; the next between its publish and its mark."""
    system.until_ready(system.start_worker())
    for point in ("appended", "published"):
        victim = system.start_faulty_scanner(point, 3, "SIGKILL")
        system.register(100, over_s=2.0)
        assert victim.wait() == -9
        assert system.ask("SELECT 1 FROM :schema.next_runs WHERE state = 'claimed' LIMIT 1")
    system.start_scanner()
    system.until_done()
    assert account(system).problems == []


def test_scanners_and_workers_share_the_work_while_others_join_and_leave(system: System) -> None:
    first, second = system.start_scanner(), system.start_scanner()
    workers = system.start_worker(), system.start_worker()
    system.until_ready(first, second, *workers)
    system.register(300, over_s=4.0)
    system.register_repeating(5, every_s=0.3, times=10)
    system.until(lambda: system.effects() >= 30, "work has begun")
    third = system.start_scanner()
    system.until(lambda: system.leads(third), "the newcomer leads a share")
    # On a busy machine a process starts more slowly than the work above is done.
    system.register(100, over_s=2.0)
    first.tell_to_stop()
    assert first.wait() == 0
    workers[0].tell_to_stop()
    assert workers[0].wait() == 0
    system.until_done()
    found = account(system)
    assert found.problems == []
    assert found.report.lost == 0, "who leaves gives back what it has"
    actors = "SELECT DISTINCT actor FROM :schema.log WHERE topic = %s"
    assert len(system.ask(actors, ("occurrence.claimed.1",))) == 3
    assert len(system.ask(actors, ("occurrence.attempted.1",))) == 2


def _running(system: System, pid: int) -> int:
    """How many attempts this worker has begun that the log does not call ended."""
    statement = (
        "SELECT count(*)::int FROM :schema.next_runs r JOIN :schema.log e"
        " ON e.stream = r.id AND e.version = r.version"
        " WHERE r.state = 'running' AND e.actor LIKE %s"
    )
    return system.ask(statement, (f"%/{pid}/%",))[0][0]
