"""asv suites. asv imports every module of this folder; ``compare/`` holds scripts, no suites."""
