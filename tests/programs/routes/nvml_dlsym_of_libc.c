/* NVML by a dlsym that was looked up in libc before anything else. */
#include "route.h"

int main(void)
{
    void *libc = some(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "libc");
    void *(*look)(void *, const char *) = some(dlsym(libc, "dlsym"), "dlsym");
    void *library = some(dlopen("libnvidia-ml.so.1", RTLD_NOW), "libnvidia-ml");
#define LOOK(name) BY(look, library, name)
    struct nvml found = { NVML_ROUTE(LOOK) };
    return report_nvml(&found);
}
