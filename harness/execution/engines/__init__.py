"""Where runs take place besides this machine; ``docs/cluster.md`` says what holds there.

Dask is imported only by ``link``, ``serving`` and ``clusters``, and only once it is asked for.
"""
