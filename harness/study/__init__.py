"""What a user writes: studies of each kind, their grids, their files, and parts of them."""
