"""What a process measures reads as Prometheus' text, bounded, from many threads."""

from concurrent.futures import ThreadPoolExecutor

from horolog.application.measuring import MOST_SERIES, Meter


def test_counts_and_distributions_are_told_as_prometheus_reads_them() -> None:
    meter = Meter()
    meter.count("attempts_total", 2, name='a"b', outcome="failed")
    for seconds in (0.0005, 0.01, 7000.0):
        meter.observe("run_seconds", seconds, name="a", outcome="succeeded")
    lines = meter.text().splitlines()
    assert 'horolog_attempts_total{name="a\\"b",outcome="failed"} 2' in lines
    assert 'horolog_run_seconds_bucket{name="a",outcome="succeeded",le="0.001"} 1' in lines
    assert 'horolog_run_seconds_bucket{name="a",outcome="succeeded",le="0.01"} 2' in lines
    assert 'horolog_run_seconds_bucket{name="a",outcome="succeeded",le="3600"} 2' in lines
    assert 'horolog_run_seconds_bucket{name="a",outcome="succeeded",le="+Inf"} 3' in lines
    assert 'horolog_run_seconds_count{name="a",outcome="succeeded"} 3' in lines
    assert "# TYPE horolog_claim_lateness_seconds histogram" in lines


def test_labels_that_never_end_are_counted_together() -> None:
    meter = Meter()
    for number in range(MOST_SERIES + 50):
        meter.count("worker_events_total", event=str(number))
    lines = [line for line in meter.text().splitlines() if "worker_events_total{" in line]
    assert len(lines) == MOST_SERIES + 1
    assert 'horolog_worker_events_total{event="other"} 50' in lines


def test_nothing_that_threads_count_at_once_is_lost() -> None:
    meter = Meter()

    def work(_: int) -> None:
        for _ in range(1000):
            meter.count("signals_total", event="x")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert 'horolog_signals_total{event="x"} 8000' in meter.text()
