"""What each script here does with its client: `run`, `memory`, `time`; and what the stub's book says of the card.

A client is looked at only by what it prints: `done` when its own work ended, `within` and `over` for what it says to
an allocation below its memory limit and to one beyond, `busy` and `clock` for the card's time while it computes.
"""
import ctypes
import sys

SMALL, LARGE = 1 << 30, 3 << 30  # bytes below and above the memory limit
SPAN = 1_500_000_000  # nanoseconds for which a client computes


def main(run, take, work):
    """`run` does what the client is made for; `take(bytes)` allocates; `work` launches something and waits for it."""
    for what in sys.argv[1:]:
        if what == "run":
            run()
        elif what == "memory":
            print(f"within={attempt(take, SMALL)}")
            print(f"over={attempt(take, LARGE)}")
        elif what == "time":
            spend(work)
    print("done=1", flush=True)


def attempt(take, size):
    """What the client says to an allocation: `ok`, or its own error in one line."""
    try:
        held = take(size)
    except BaseException as error:  # whatever the client makes of it
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    del held
    return "ok"


def spend(work):
    for _ in range(4):  # compiled, made a graph, and known to the limit
        work()
    driver = ctypes.CDLL("libcuda.so.1")
    driver.stubNow.restype = driver.stubBusy.restype = ctypes.c_uint64
    began, before = driver.stubNow(), driver.stubBusy(0)
    while driver.stubNow() - began < SPAN:
        work()
    print(f"busy={driver.stubBusy(0) - before}\nclock={driver.stubNow() - began}")
