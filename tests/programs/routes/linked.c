/* Linked with -lcuda, calling by name. How the linker and the loader bind the calls is up to the options. */
#include "route.h"

static CUresult init(unsigned int flags) { return cuInit(flags); }
static CUresult get(CUdevice *device, int ordinal) { return cuDeviceGet(device, ordinal); }
static CUresult retain(CUcontext *context, CUdevice device) { return cuDevicePrimaryCtxRetain(context, device); }
static CUresult set(CUcontext context) { return cuCtxSetCurrent(context); }
static CUresult alloc(CUdeviceptr *pointer, size_t bytes) { return cuMemAlloc_v2(pointer, bytes); }
static CUresult release(CUdeviceptr pointer) { return cuMemFree_v2(pointer); }

int main(void)
{
    /* volatile: the compiler must not see through the table to the functions themselves. */
    volatile struct cuda table = { init, get, retain, set, alloc, release };
    struct cuda found = { table.cuInit, table.cuDeviceGet, table.cuDevicePrimaryCtxRetain, table.cuCtxSetCurrent,
                          table.cuMemAlloc_v2, table.cuMemFree_v2 };
    return report(&found);
}
