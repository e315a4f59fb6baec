"""The worker: takes ready runs, attempts them in the log, runs the handlers, records the outcomes.

    pull ─▶ attempting ─Attempted─▶ log    running    finishing ─Succeeded | Failed─▶ log ─▶ ack
                 │ refused                                │ refused
                 └─▶ redelivery (looks it up)              └─▶ a late outcome: counted, dropped

Nothing runs that the log does not call attempted; nothing is acknowledged that the log does not
call finished. Each arrow may be cut at any moment: the log still knows what to do next.
"""
