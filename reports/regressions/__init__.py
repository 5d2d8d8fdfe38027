"""Regressions: asv's results commit by commit, the gate between two commits, and their history.

``asv_files`` reads what asv wrote into snapshots, ``running`` has asv write it, ``gate`` compares
two snapshots as :mod:`marginbench.reports.comparison` does, and ``history`` follows values over
commits.
"""
