"""Results folders in object stores, and several commands on one store."""
