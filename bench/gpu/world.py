"""Programs in two worlds: the driver alone, and the driver behind the shim with limits.

Nothing of the caller's environment that limits or preloads gets through. Each limited program has a ledger of its own
unless it is given one. Without a card the stub driver takes the card's place (`stub`). No program outlives its time,
nor the time of its stage, and what it started dies with it; a program that fails is heard: the end of its stderr is
part of the error.
"""

import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 1 << 20
OUT_OF_MEMORY = 2
HEARD = 20  # lines of stderr


class Place:
    """Where programs, artifacts and the driver are. `left` says how many seconds the stage still has."""

    def __init__(self, programs, artifacts, stub=None, left=lambda: 600):
        self.programs, self.artifacts, self.stub, self.left = Path(programs), Path(artifacts).resolve(), stub, left
        # Where ledgers lie by default: in a file system on a disk the first touch of one takes milliseconds.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.scratch = Path(tempfile.mkdtemp(prefix="gpucap-card-", dir=memory))
        self.ledgers = (self.scratch / f"ledger-{n}" for n in itertools.count())
        self.shim = str(self.artifacts / "libgpucap.so")

    def close(self):
        """Removes what the run left in its scratch directory."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def ledger_apart(self):
        """A ledger in a directory of its own: its processes and those of other ledgers do not see each other."""
        ledger = next(self.ledgers)
        ledger.with_suffix(".apart").mkdir()
        return ledger.with_suffix(".apart") / "ledger"

    def environment(self, limits=None, ledger=None):
        """Without limits: the driver alone. With them, even none (`{}`): behind the shim."""
        unwanted = ("GPU_MEM_LIMIT", "GPU_CORE_PCT", "GPU_PROFILE", "LD_PRELOAD")
        kept = {k: v for k, v in os.environ.items() if k not in unwanted and not k.startswith("GPUCAP_")}
        kept["PROBE_DIR"] = str(self.programs)
        if self.stub:
            (self.scratch / "card").mkdir(exist_ok=True)
            # Like a card: memory by the page, pools and contexts that take some, and lengths by which turns are taken.
            kept |= {
                "LD_LIBRARY_PATH": str(self.stub),
                "STUB_GPU_DIR": str(self.scratch / "card"),
                "STUB_GPU_COPY_BYTES_PER_US": "500000",
                "STUB_GPU_GRANULARITY": "2MiB",
                "STUB_GPU_POOL_GRANULARITY": "32MiB",
            }
        if limits is None:
            return kept
        book = str(ledger or next(self.ledgers))
        return kept | {"LD_PRELOAD": self.shim, "GPUCAP_LEDGER": book} | limits

    def ask(self, words, limits=None, ledger=None, timeout=60, stdin="", more=None):
        """Runs a program to its end; `more` is what its environment has besides. Raises if it is not over in time."""
        process = subprocess.Popen(
            [str(word) for word in words],
            env=self.environment(limits, ledger) | (more or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        limit = max(1, min(timeout, self.left()))
        try:
            out, err = process.communicate(stdin, timeout=limit)
        except subprocess.TimeoutExpired as late:
            end(process)
            raise RuntimeError(f"killed after {limit:.0f} s{heard(late.stderr)}") from None
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def must(self, words, *given, **named):
        """The same of a program that has to succeed."""
        done = self.ask(words, *given, **named)
        if done.returncode:
            raise RuntimeError(f"ended with {done.returncode}{heard(done.stderr)}")
        return done

    def worker(self, *words, limits=None, ledger=None, timeout=60):
        """What the worker answers."""
        return answers(self.ask([self.programs / "worker", *words], limits, ledger, timeout))


def heard(text):
    """The last lines of what a program complained of."""
    text = text.decode(errors="replace") if isinstance(text, bytes) else text or ""
    lines = [line for line in text.strip().splitlines() if line.strip()][-HEARD:]
    return ": " + "\n".join(lines) if lines else ""


def end(process):
    """Kills a program that leads a session, with all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        pipe.close()


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
        raise RuntimeError(f"ended with {done.returncode}{heard(done.stderr)}")
    return found


class Started:
    """A program that is running, spoken to line by line. Killed when the block ends."""

    def __init__(self, place, words, limits=None, ledger=None, more=None):
        self.place = place
        with tempfile.NamedTemporaryFile(dir=place.scratch, delete=False) as complaints:
            self.complaints = Path(complaints.name)
            self.process = subprocess.Popen(
                [str(word) for word in words],
                env=place.environment(limits, ledger) | (more or {}),
                cwd=place.scratch,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                bufsize=0,
                start_new_session=True,
            )
        self.unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)

    def fail(self, why):
        """Raises, with what the program said."""
        raise RuntimeError(why + heard(self.complaints.read_bytes()))

    def say(self, line):
        """Writes one line."""
        try:
            self.process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            self.fail(f"had ended before `{line}`")

    def line(self, timeout=30):
        """Reads one line."""
        limit = max(1, min(timeout, self.place.left()))
        until = time.monotonic() + limit
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
            part = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not part:
                self.fail("ended early" if ready else f"no answer in {limit:.0f} s")
            self.unread += part
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode(errors="replace")

    def text(self, timeout):
        """Reads to the end."""
        self.process.stdin.close()
        self.process.stdin = None  # else communicate writes to it
        limit = max(1, min(timeout, self.place.left()))
        try:
            out, _ = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.fail(f"not over after {limit:.0f} s")
        if self.process.returncode:
            self.fail(f"ended with {self.process.returncode}")
        return (self.unread + out).decode(errors="replace")

    def rest(self, timeout):
        """The same as the worker's answers."""
        return answers(subprocess.CompletedProcess([], 0, self.text(timeout), ""))


class Actor(Started):
    """tests/programs/tools/actor.c: obeys commands, answers `code value extra`."""

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
            self.fail(f"{command}: error {code}")
        return value, extra
