"""Alerts: rules of what an owner wants to know, who watches them, and how notices go out."""
