"""asv suites. asv imports every module of this folder."""
