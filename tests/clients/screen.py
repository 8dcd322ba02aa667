"""Runs a program on a terminal until it has drawn what is looked for, and prints its screen without the escapes.

screen.py PATTERN PROGRAM [ARGUMENT...]
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][0-9A-B]|\x1b[=>]|\r")

pattern = re.compile(sys.argv[1].encode())
child, terminal = pty.fork()
if child == 0:
    os.environ.update(LINES="40", COLUMNS="160")
    os.execv(sys.argv[2], sys.argv[2:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
drawn, until = b"", time.monotonic() + 40
while not pattern.search(ESCAPES.sub(b"", drawn)) and time.monotonic() < until:
    if select.select([terminal], [], [], 1)[0]:
        try:
            drawn += os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
sys.stdout.buffer.write(ESCAPES.sub(b"", drawn) + b"\n")
