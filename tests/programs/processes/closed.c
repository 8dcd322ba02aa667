/*
 * argv: FILE. Started without descriptors 0 to 2. FILE becomes all three of them; then the driver is used up to a
 * refusal. What is in FILE at the end is what the program wrote, and nothing else.
 */
#include "route.h"

#include <fcntl.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (open(argv[1], O_RDWR | O_CREAT | O_APPEND, 0600) != descriptor)
            return 3;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 4;
#define LOOK(name) BY(dlsym, library, name)
    struct cuda cuda = { CUDA_ROUTE(LOOK) };
    CUcontext context;
    CUdeviceptr pointer;
    CUresult results[3] = { cuda.cuInit(0), 0, 0 };
    if (!results[0] && !cuda.cuDevicePrimaryCtxRetain(&context, 0) && !cuda.cuCtxSetCurrent(context)) {
        results[1] = cuda.cuMemAlloc_v2(&pointer, 100ul << 30);
        results[2] = cuda.cuMemAlloc_v2(&pointer, 1000);
    }
    return dprintf(1, "%u %u %u\n", results[0], results[1], results[2]) < 0;
}
