/* A library linked with -lcuda whose constructor uses the driver before any code of the program or of a preload ran. */
#include "route.h"

int early_code(void);

static int code = 1;

__attribute__((constructor)) static void start(void)
{
#define ENTRY(name) name,
    volatile struct cuda table = { CUDA_ROUTE(ENTRY) };
    struct cuda found = { table.cuInit, table.cuDeviceGet, table.cuDevicePrimaryCtxRetain, table.cuCtxSetCurrent,
                          table.cuMemAlloc_v2, table.cuMemFree_v2 };
    code = report(&found);
}

int early_code(void) { return code; }
