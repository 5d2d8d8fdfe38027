"""Results folders as wholes: many records in few files, several folders in one."""
