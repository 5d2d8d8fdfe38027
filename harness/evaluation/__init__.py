"""What a run does in a worker, and how what comes back is judged."""
