"""The ready queue on NATS JetStream: connecting, the stream of a namespace, publishing into it.

The queue is a hint, never the truth: whatever it forgets, repeats or invents, the log re-drives or
refuses. So nothing in here has to be durable, only honest about what it does not know.
"""
