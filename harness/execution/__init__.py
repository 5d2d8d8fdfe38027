"""Running what is planned: workers, limits, progress, other machines."""
