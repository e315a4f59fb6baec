"""Frameworks that programs are written in: each is imported by those who have it, nobody else."""
