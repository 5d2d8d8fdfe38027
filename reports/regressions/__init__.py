"""Regressions: asv's results commit by commit, the gate between two commits, and their pages.

``asv_files`` reads what asv wrote into snapshots, ``running`` has asv write it, ``gate`` judges two
snapshots, ``history`` follows values over commits, and ``pages`` says it as text and as HTML.
"""
