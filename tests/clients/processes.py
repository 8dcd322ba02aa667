"""Whose processes nvidia-ml-py finds on the first card."""
import pynvml

pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
pids = sorted(process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(device))
print("pids=" + " ".join(map(str, pids)))
