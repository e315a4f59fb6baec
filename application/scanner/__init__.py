"""The scanner: from the next-run index to the ready queue, on as many machines as there are.

                     next-run index (Postgres)                        read these modules
        bounded pages │            ▲ NOTIFY: what was just written
                      ▼            │                                  sweep, news
          agenda: time wheel, a queue for each partition              wheel, agenda
                      │ due
                      ▼
          one append: Claimed, under fencing tokens                   deciding, claiming
                      │ after the commit
                      ▼
          outbox ──▶ ready queue (JetStream)                          outbox, progress, publishing
                      │
          looks: is the message still there?                          looking, sent, republishing
          leases: who leads which partition                           leadership, territory

Each partition has one leader, elected in the log; the election's version is the fencing token. The
log refuses a claim under an older token, and a claim whose index row has changed. So two leaders,
stale memory, lost notifications, repeated messages and clocks that jump cost work or time, never a
second run. Everything in memory is a cache: a successor begins with nothing.

What fails, and what then:

    the process, after its commit       its successor publishes what lies behind the published mark
    the process, before its commit      nothing has happened; the row is still due
    the process, stopped and resumed    its tokens are old: refused, counted, it steps down
    Postgres                            nothing is claimed; the leases end; it goes on by itself
    NATS                                claiming goes on to a bound, then waits; nothing is lost
    NATS, its data gone                 the stream is made anew, all claims are published again
    all notifications                   the sweep finds the rows, at most one sweep late
    all workers                         windows are extended; no message is sent twice
"""
