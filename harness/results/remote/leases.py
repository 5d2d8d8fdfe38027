"""Who works on a store: a sign of life for each command, and claims on what only one may do.

A command writes ``commands/ID`` again and again. It counts as gone if it did not for
:data:`EXPIRE_S`, by the clock of the store alone: one of its own objects tells each command what
that clock shows. No clock of a machine matters.

A claim is ``claims/NAME.NUMBER``, created only if there is none. A claim of a command that has gone
stays; who takes its place creates the next number, so that of several only one does. A command that
ends removes its claims before its sign of life. So whoever finds a claim without a sign of life
looks at it once more: if it is still there, its command was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import psutil

from .objects import Entry, MissingObject, Objects, StoreError

#: Seconds between two signs of life, and after how many without one a command counts as gone.
RENEW_S, EXPIRE_S = 20.0, 120.0
COMMANDS, CLAIMS = "commands", "claims"
# Attempts at a claim that appears and disappears while it is looked at.
_ATTEMPTS = 10
# Commands of this process that have ended. One that could not take back its claims would otherwise
# seem alive as long as its process.
_STOPPED: set[str] = set()


class Leases:
    """This command among those that work on a store.

    Parameters
    ----------
    objects : Objects
    setting : str
        What kind of machine this is, in words, for who watches.
    """

    def __init__(self, objects: Objects, setting: str = "") -> None:
        self.objects = objects
        self.id = uuid.uuid4().hex
        self._about = json.dumps(_machine() | {"since": _now(), "setting": setting}).encode()
        # Name of a claim -> of its object.
        self._own: dict[str, str] = {}
        self._known: dict[str, Mapping[str, Any]] = {}
        self._renewed = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._renew_for_ever, daemon=True)

    @property
    def _name(self) -> str:
        return f"{COMMANDS}/{self.id}"

    def begin(self) -> None:
        """Give the first sign of life, and go on in a thread."""
        self._renew()
        self._thread.start()

    def end(self) -> None:
        """Release all claims, then take back the sign of life."""
        self.stop()
        for name in list(self._own):
            self.release(name)
        self.objects.delete([self._name])

    def stop(self) -> None:
        """Give no further sign of life, as if killed: the store does not serve."""
        _STOPPED.add(self.id)
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _renew(self) -> None:
        self.objects.put(self._name, self._about)
        self._renewed = time.monotonic()

    def _renew_for_ever(self) -> None:
        while not self._end.wait(RENEW_S):
            # If the store does not serve, records cannot be pushed either, which is told.
            with contextlib.suppress(StoreError):
                self._renew()

    def others(self) -> dict[str, Mapping[str, Any]]:
        """The other commands that are alive -> what they say of themselves."""
        found = self.objects.list(COMMANDS)
        if f"{COMMANDS}/{self.id}" not in found:
            self._renew()
            found = self.objects.list(COMMANDS)
        now = self._clock(found)
        alive = {}
        for name, entry in found.items():
            command = name.rpartition("/")[2]
            ended = command == self.id or command in _STOPPED
            if not ended and now - entry.changed <= EXPIRE_S:
                about = self._about_of(name)
                if about is not None and not _has_died(about):
                    alive[command] = about
        return alive

    def _clock(self, found: Mapping[str, Entry]) -> float:
        """What the clock of the store shows, or a little less."""
        own = found.get(self._name)
        if own is None:
            return max((entry.changed for entry in found.values()), default=0.0)
        return own.changed + max(0.0, time.monotonic() - self._renewed)

    def _about_of(self, name: str) -> Mapping[str, Any] | None:
        """What a command says of itself, which never changes; None if it has ended."""
        if name not in self._known:
            found = _read(self.objects, name)
            if found is None:
                return None
            self._known[name] = found
        return self._known[name]

    def claim(self, name: str, about: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Claim something that only one command may do at a time.

        Parameters
        ----------
        name : str
        about : mapping
            What others are told of it.

        Returns
        -------
        mapping or None
            None if it is claimed now; otherwise what the command that has it says of itself.
        """
        content = json.dumps({"command": self.id, "since": _now(), **about}).encode()
        number, owner = 1, ""
        for _ in range(_ATTEMPTS):
            place = f"{CLAIMS}/{name}.{number}"
            if self.objects.create(place, content):
                self._own[name] = place
                return None
            owner = str((_read(self.objects, place) or {}).get("command", ""))
            if not owner:
                continue  # released meanwhile
            if owner == self.id:
                # Written, although the answer was lost.
                self._own[name] = place
                return None
            others = self.others()
            if owner in others:
                return others[owner]
            if (_read(self.objects, place) or {}).get("command") == owner:
                number += 1
        return self._known.get(f"{COMMANDS}/{owner}", {})

    def release(self, name: str) -> None:
        """Give a claim back."""
        place = self._own.pop(name, None)
        if place is not None:
            self.objects.delete([place])

    def sweep(self) -> None:
        """Remove what commands have left that were killed, if no other is alive.

        The caller has claimed what every command must claim before it claims a run.
        """
        if self.others():
            return
        claims = [name for name in self.objects.list(CLAIMS) if "/folder." not in name]
        commands = [name for name in self.objects.list(COMMANDS) if name != self._name]
        self.objects.delete([*claims, *commands])


def _read(objects: Objects, name: str) -> dict[str, Any] | None:
    """The content of a small object; None if it is gone, empty if it is none of ours."""
    try:
        found = json.loads(objects.get(name)[0])
    except MissingObject:
        return None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _machine() -> dict[str, Any]:
    """Where this command runs, and how to find out there whether it still does."""
    process = psutil.Process()
    return {
        "machine": platform.node(),
        "pid": process.pid,
        "started": process.create_time(),
        "namespace": _namespace(),
    }


def _namespace() -> str:
    """Tells apart where numbers of processes mean different ones; empty if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            return f"{source.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _has_died(about: Mapping[str, Any]) -> bool:
    """Whether a command of this machine, of which there was a sign of life, has been killed."""
    if not about.get("namespace") or about.get("namespace") != _namespace():
        return False
    try:
        return bool(psutil.Process(about["pid"]).create_time() != about["started"])
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, KeyError, TypeError, ValueError):
        return False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
