"""What nvidia-ml-py says about the time of the first card, and whose it is."""
import pynvml

pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
rates = pynvml.nvmlDeviceGetUtilizationRates(device)
print(f"gpu={rates.gpu}\nmemory={rates.memory}")
try:
    samples = pynvml.nvmlDeviceGetProcessUtilization(device, 0)
except pynvml.NVMLError_NotFound:
    samples = []
for sample in samples:
    # The list is longer than what was filled.
    if sample.pid:
        print(f"process={sample.pid} {sample.smUtil}")
_, samples = pynvml.nvmlDeviceGetSamples(device, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
print("samples=" + " ".join(str(sample.sampleValue.uiVal) for sample in samples))
