"""What each command does; heavy modules are imported by the commands that need them."""
