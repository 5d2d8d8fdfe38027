"""``marginbench doctor``, and the completion of words in a shell."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

from marginbench.harness.cli import doctor


def test_a_machine_is_described_and_what_is_wrong_there(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("MARGINBENCH_MIRROR", "")
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    assert {"marginbench", "libraries", "cores", "BLAS", "memory", "mirror"} <= lines.keys()
    assert str(tmp_path) in lines["datasets"]
    for mirror in ("https://host/data", str(tmp_path)):
        monkeypatch.setenv("MARGINBENCH_MIRROR", mirror)
        assert ["mirror", "ok", mirror] in [[*finding] for finding in doctor._findings()]
    monkeypatch.setenv("MARGINBENCH_MIRROR", "/no/such/folder")
    code, out, _ = run("doctor", "--json")
    (wrong,) = [item for item in json.loads(out) if item["state"] == "wrong"]
    assert (code, wrong["check"]) == (1, "mirror")
    assert "MARGINBENCH_MIRROR" in wrong["found"]


def test_a_folder_that_cannot_be_written_is_wrong_and_a_full_disk_is_noted(tmp_path, monkeypatch):
    for free, state in ((2.0, "ok"), (1.9, "note")):
        usage = SimpleNamespace(free=free * 1e9)
        monkeypatch.setattr("shutil.disk_usage", lambda folder, usage=usage: usage)
        found = doctor._writable("datasets", tmp_path)
        assert found == ("datasets", state, f"{tmp_path}, {free} GB free")

    def refuse(**where):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refuse)
    finding = doctor._writable("datasets", tmp_path / "not" / "made")
    assert finding.state == "wrong"
    assert finding.found.startswith(f"{tmp_path}/not/made: cannot be written (Read-only file")


def test_what_others_do_there_and_what_is_not_installed_is_noted(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "asv" else name)
    advice = ": times measured now are disturbed", "; other programs use much of it"
    for busy, free, state, words in ((30, 4.0, "note", advice), (25, 4.1, "ok", ("", ""))):
        memory = SimpleNamespace(available=free * 1e9, total=16e9)
        monkeypatch.setattr("psutil.cpu_percent", lambda interval, busy=busy: busy)
        monkeypatch.setattr("psutil.virtual_memory", lambda memory=memory: memory)
        found = [*doctor._findings()]
        assert ("other work", state, f"{busy} % of the processor{words[0]}") in found
        assert ("memory", state, f"{free} of 16.0 GB free{words[1]}") in found
        assert ("extras", "note", "not installed: regressions (regressions of commits)") in found


def test_a_shell_completes_commands_and_options():
    def words(line):
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        done = subprocess.run(
            [sys.executable, "-m", "marginbench"],
            env={**os.environ, **asked, "_MARGINBENCH_COMPLETE": "complete_bash"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    assert words("marginbench rep") == ["report", "reproduce"]
    assert "--timeout" in words("marginbench run --t")
