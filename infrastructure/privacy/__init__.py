"""Encryption: master keys, the keys of subjects that they wrap, and what is sealed with those."""
