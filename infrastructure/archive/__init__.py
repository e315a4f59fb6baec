"""Archives of events that have left the log: files that need no server to be read."""
