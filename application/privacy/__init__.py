"""Whose data a job carries is sealed with a key of that subject, and forgotten with the key."""
