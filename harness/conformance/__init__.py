"""Checks of a solver's class against the contract, for its author."""
