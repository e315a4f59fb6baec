"""Several logs: one namespace over several Postgres databases, each with its own order.

    command ─▶ place of the job (a hash, fixed for ever) ─▶ that database's log, index, partitions
    query   ─▶ the job's log, or a page of each, merged

A log is a whole: its own partitions, leaders, positions, hash chain and ready queue. Scanners and
workers serve each of them as if it were alone, so one that is away stops only its own jobs.
"""
