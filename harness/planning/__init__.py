"""What will run, under which keys, and why not."""
