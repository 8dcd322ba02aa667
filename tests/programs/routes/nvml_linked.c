/* Linked with -lnvidia-ml, calling by name. */
#include "route.h"

int main(void)
{
#define ENTRY(name) name,
    volatile struct nvml table = { NVML_ROUTE(ENTRY) };
    struct nvml found = { table.nvmlDeviceGetMemoryInfo, table.nvmlInit_v2, table.nvmlDeviceGetHandleByIndex_v2 };
    return report_nvml(&found);
}
