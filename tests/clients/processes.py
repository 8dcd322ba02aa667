"""Whose processes nvidia-ml-py finds on the first card."""
import pynvml

pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
print("pids=" + " ".join(str(pid) for pid in sorted(it.pid for it in pynvml.nvmlDeviceGetComputeRunningProcesses(device))))
