"""What runs until it is told to stop: a scanner, a worker, and the children of `dev` and the demo."""
