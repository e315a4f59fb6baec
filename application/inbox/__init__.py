"""The inbox: commands that a client gives in a transaction of its own.

    client's transaction:  look ─▶ decide on what would be ─▶ put down      rolled back: nothing
                                                                │ COMMIT, NOTIFY
    leader of the partition:                read ─▶ decide ─▶ append + take away, in one commit

A client that writes an order and registers the job that bills it wants both or neither. It cannot
append within its transaction: the log lock would be held until it commits, and what was decided at
the call would be stale by then. So the command is put down beside the client's own rows, and is
carried out by :mod:`horolog.application.commands` as soon as it is committed.

At the call the same commands run on a copy of the job in memory, so that whatever the log's state
refuses is raised there and then, and the ids that are returned are those that the log will have.
What changes between the call and the commit (somebody cancels the job) may still refuse it: then it
is set aside with the cause, for a person; nothing that was committed is dropped in silence.

A command counts as given at the time of the call: a registration's fire times begin there, and what
of them passes before the commit is caught up as after any outage.
"""
