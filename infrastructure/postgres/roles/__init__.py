"""Least privilege: what each kind of process may do in the database, and the roles that say so."""
