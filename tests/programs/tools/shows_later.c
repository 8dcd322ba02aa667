/* Takes CUDA_VISIBLE_DEVICES away once the driver has read it, and then uses the device that it left. */
#include "route.h"

#define LOOK(name) BY(dlsym, driver, name)

int main(void)
{
    void *driver = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    struct cuda cuda = { CUDA_ROUTE(LOOK) };
    CUcontext context = NULL;
    printf("init=%u\n", cuda.cuInit(0));
    unsetenv("CUDA_VISIBLE_DEVICES");
    CUresult retained = cuda.cuDevicePrimaryCtxRetain(&context, 0);
    printf("retained=%u\n", retained);
    if (!retained)
        printf("over=%u\n", (cuda.cuCtxSetCurrent(context), try_alloc(&cuda, LIMIT + 1)));
    return 0;
}
