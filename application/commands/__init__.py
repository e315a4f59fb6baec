"""The command API: what a client may ask for, from registration to the discarding of a dead letter.

Each command reads the state, decides in the domain, and appends; where somebody else was faster it
reads again and decides anew, unless the caller named the version that it had seen. A command that
is refused leaves no event. A client needs Postgres alone: what it asked for is kept when its call
returns, and it may walk away.
"""
