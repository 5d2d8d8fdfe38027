"""Regressions: asv's results commit by commit, the gate between two commits, and their pages.

``asv_files`` reads what asv wrote into snapshots, ``running`` has asv write it, ``verdicts``
compares two snapshots, and ``history`` follows values over commits. ``text``, ``document`` and the
pages say the same in different forms.
"""
