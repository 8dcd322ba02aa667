"""IREE: a module compiled for the card, and its runtime's CUDA driver."""
import numpy
from card import main
from iree import compiler, runtime

CODE = """
func.func @step(%a: tensor<64xf32>) -> tensor<64xf32> {
  %b = arith.addf %a, %a : tensor<64xf32>
  return %b : tensor<64xf32>
}
"""
config = runtime.Config("cuda")
binary = compiler.compile_str(CODE, target_backends=["cuda"], extra_args=["--iree-cuda-target=sm_80"])
module = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, binary), config)
ones = numpy.ones(64, dtype=numpy.float32)


def run():
    kept = runtime.asdevicearray(config.device, ones)
    assert (kept.to_host() == ones).all()
    module.step(ones).to_host()


def take(size):
    return config.device.allocator.allocate_buffer(
        memory_type=runtime.MemoryType.DEVICE_LOCAL, allowed_usage=runtime.BufferUsage.DEFAULT, allocation_size=size
    )


def work():
    module.step(ones).to_host()


main(run, take, work)
