/* A library linked with -lcuda that gives its own names to the driver's functions, as vendors' wrappers do. */
#include "route.h"

int wrapper_report(void);

int wrapper_report(void)
{
#define ENTRY(name) name,
    volatile struct cuda table = { CUDA_ROUTE(ENTRY) };
    struct cuda found = { table.cuInit, table.cuDeviceGet, table.cuDevicePrimaryCtxRetain, table.cuCtxSetCurrent,
                          table.cuMemAlloc_v2, table.cuMemFree_v2 };
    int code = report(&found);
    fflush(stdout);
    return code;
}
