"""What nvidia-ml-py says about the memory of the first card: memory.py 1|2 (the version of the question)."""
import sys

import pynvml

pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
version = pynvml.nvmlMemory_v2 if sys.argv[1] == "2" else None
memory = pynvml.nvmlDeviceGetMemoryInfo(device, version=version)
for key in ("total", "used", "free"):
    print(f"{key}={getattr(memory, key)}")
if version:
    print(f"reserved={memory.reserved}")
