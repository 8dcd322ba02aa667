"""Programs in two worlds: the driver alone, and the driver behind the shim with limits.

Nothing of the caller's environment that limits or preloads gets through. Each capped program has a ledger of its own
unless it is given one. Without a card the stub driver takes the card's place (`stub`).
"""

import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 1 << 20
OUT_OF_MEMORY = 2


class Place:
    """Where programs, artifacts and the driver are."""

    def __init__(self, programs, artifacts, stub=None):
        self.programs, self.artifacts, self.stub = Path(programs), Path(artifacts), stub
        # Where ledgers lie by default: in a file system on a disk the first touch of one takes milliseconds.
        self.scratch = Path(tempfile.mkdtemp(prefix="gpucap-card-", dir="/dev/shm"))
        self.ledgers = (self.scratch / f"ledger-{n}" for n in itertools.count())
        self.shim = str(self.artifacts.resolve() / "libgpucap.so")

    def close(self):
        """Removes what the run left in its scratch directory."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def environment(self, limits=None, ledger=None):
        """Without limits: the driver alone. With them, even none (`{}`): behind the shim."""
        unwanted = ("GPU_MEM_LIMIT", "GPU_CORE_PCT", "GPU_PROFILE", "LD_PRELOAD")
        kept = {k: v for k, v in os.environ.items() if k not in unwanted and not k.startswith("GPUCAP_")}
        kept["PROBE_DIR"] = str(self.programs)
        if self.stub:
            (self.scratch / "card").mkdir(exist_ok=True)
            # Lengths like a card's, so that queues fill and turns are taken.
            kept |= {
                "LD_LIBRARY_PATH": str(self.stub),
                "STUB_GPU_DIR": str(self.scratch / "card"),
                "STUB_GPU_COPY_BYTES_PER_US": "500000",
            }
        if limits is None:
            return kept
        book = str(ledger or next(self.ledgers))
        return kept | {"LD_PRELOAD": self.shim, "GPUCAP_LEDGER": book} | limits

    def ask(self, words, limits=None, ledger=None, timeout=60, stdin=""):
        """Runs a program to its end."""
        return subprocess.run(
            [str(word) for word in words],
            env=self.environment(limits, ledger),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def worker(self, *words, limits=None, ledger=None, timeout=60):
        """What the worker answers."""
        return answers(self.ask([self.programs / "worker", *words], limits, ledger, timeout))


def answers(done):
    """The values of a finished worker; raises what it could not do."""
    found = {}
    for line in done.stdout.splitlines():
        kind, *rest = line.split("\t")
        if kind in "SF" and len(rest) == 3:
            raise RuntimeError(rest[2])
        if kind == "A":
            value = json.loads(rest[1])
            found[rest[0]] = value["value"] if isinstance(value, dict) and "value" in value else value
    if done.returncode:
        raise RuntimeError(f"ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return found


class Started:
    """A program that is running, spoken to line by line. Killed when the block ends."""

    def __init__(self, place, words, limits=None, ledger=None):
        self.process = subprocess.Popen(
            [str(word) for word in words],
            env=place.environment(limits, ledger),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self.unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in filter(None, (self.process.stdin, self.process.stdout)):
            pipe.close()

    def say(self, line):
        """Writes one line."""
        self.process.stdin.write(line.encode() + b"\n")

    def line(self, timeout=30):
        """Reads one line."""
        end = time.monotonic() + timeout
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            part = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not part:
                raise RuntimeError("ended early" if ready else f"no answer in {timeout} s")
            self.unread += part
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode()

    def rest(self, timeout):
        """Reads to the end, as the worker's answers."""
        self.process.stdin.close()
        self.process.stdin = None  # else communicate writes to it
        out, _ = self.process.communicate(timeout=timeout)
        text = (self.unread + out).decode()
        return answers(subprocess.CompletedProcess([], self.process.returncode, text, ""))


class Actor(Started):
    """tests/programs/actor.c: obeys commands, answers `code value extra`."""

    def __init__(self, place, limits=None, ledger=None):
        super().__init__(place, [place.programs / "actor"], limits, ledger)

    def tell(self, command):
        """Code, value and extra of one command."""
        self.say(command)
        code, value, extra = self.line().split(" ")
        return int(code), int(value), int(extra)

    def must(self, command):
        """The same, for a command that has to succeed."""
        code, value, extra = self.tell(command)
        if code:
            raise RuntimeError(f"{command}: error {code}")
        return value, extra
