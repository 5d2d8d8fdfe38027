"""Loaded by every Python process of a test: lets one write fail as a full or broken disk would.

``MARGINBENCH_FAULT`` holds JSON: a part of the path of the file (``path``), which of those files
in this process (``number``, from 0), at what (``step``: open, write, sync or replace), after how
many bytes (``after``) and the system's reason (``errno``). Of a journal the number is that of the
record.
"""

from __future__ import annotations

import io
import json
import os

_real_open, _real_fsync, _real_replace, _real_write = io.open, os.fsync, os.replace, os.write


class Broken(io.FileIO):
    """A file on a disk that takes so many bytes and no more."""

    room: int
    reason: OSError

    def write(self, data):
        size = memoryview(data).nbytes
        if size > self.room:
            raise self.reason
        self.room -= size
        return super().write(data)


class Fault:
    """One file that cannot be written."""

    def __init__(self, path, number, step, after, errno):
        self.path, self.number, self.step, self.after = path, number, step, after
        self.reason = OSError(errno, os.strerror(errno))
        self.chosen = None

    def open(self, file, mode="r", *args, **kwargs):
        if mode == "wb" and self.path in str(file):
            self.number -= 1
            if self.number == -1:
                self.chosen = os.path.abspath(file)
                if self.step == "open":
                    raise self.reason
                if self.step == "write":
                    broken = Broken(file, "w")
                    broken.room, broken.reason = self.after, self.reason
                    return io.BufferedWriter(broken, 1)
        return _real_open(file, mode, *args, **kwargs)

    def fsync(self, descriptor):
        if self.step == "sync" and self.chosen == os.readlink(f"/proc/self/fd/{descriptor}"):
            raise self.reason
        _real_fsync(descriptor)

    def write(self, descriptor, content):
        if self.chosen is None and b'"type":"record"' in bytes(content[:60]):
            file = os.readlink(f"/proc/self/fd/{descriptor}")
            self.number -= self.path in file
            if self.number == -1:
                self.chosen = file
                if self.step != "sync":
                    _real_write(descriptor, content[: min(self.after, len(content) - 1)])
                    raise self.reason
        return _real_write(descriptor, content)

    def replace(self, source, target, **kwargs):
        if self.step == "replace" and self.chosen == os.path.abspath(source):
            raise self.reason
        _real_replace(source, target, **kwargs)


if "MARGINBENCH_FAULT" in os.environ:
    fault = Fault(**json.loads(os.environ["MARGINBENCH_FAULT"]))
    io.open, os.fsync, os.replace, os.write = fault.open, fault.fsync, fault.replace, fault.write
