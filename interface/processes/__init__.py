"""What runs until it is told to stop: a scanner, a worker, the children of `dev` and demo."""
