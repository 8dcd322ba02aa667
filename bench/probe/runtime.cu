// A program of the CUDA runtime that does the common things once, so that the names that the runtime
// asks for are complete.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void nothing() {}

int main() {
    void *memory = nullptr;
    cudaStream_t stream;
    size_t available = 0, total = 0;
    cudaError_t error = cudaMalloc(&memory, 1 << 20);
    if (error != cudaSuccess) {
        std::fprintf(stderr, "cudaMalloc: %s\n", cudaGetErrorName(error));
        return 1;
    }
    cudaStreamCreate(&stream);
    nothing<<<1, 1, 0, stream>>>();
    cudaStreamSynchronize(stream);
    cudaMemGetInfo(&available, &total);
    cudaFree(memory);
    return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
