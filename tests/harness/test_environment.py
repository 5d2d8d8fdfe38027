"""The recorded setting names software and hardware, and neither hosts nor users."""

import getpass
import json
import platform

from marginbench.harness.environment import environment, version


def test_what_is_recorded_names_no_host_and_no_user():
    found = environment()
    assert (found["marginbench"], found["python"]) == (version(), platform.python_version())
    assert set(found["libraries"]) == {"numpy", "scipy", "numba", "sklearn", "pyarrow"}
    assert found["cores"] >= 1
    assert found["memory_mb"] > 100
    assert found["blas"]
    assert {"commit", "dirty", "platform", "processor"} <= set(found)
    words = json.dumps(found).replace('"', " ").replace("/", " ").split()
    assert platform.node() not in words
    assert getpass.getuser() not in words
