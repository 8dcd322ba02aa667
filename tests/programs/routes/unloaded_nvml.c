/* NVML was opened in a namespace of its own and closed; then the shim needs NVML, since the limits go by index. */
#include "unload.h"

#define LOOK(name) BY(dlsym, driver, name)

int main(void)
{
    void *nvml = some(dlmopen(LM_ID_NEWLM, "libnvidia-ml.so.1", RTLD_NOW), "libnvidia-ml");
    void *place = place_of(nvml);
    printf("nvml=%s\n", object_of(some(dlsym(nvml, "nvmlDeviceGetMemoryInfo"), "nvmlDeviceGetMemoryInfo")));
    if (dlclose(nvml))
        return 1;
    printf("gone=%d\n", is_gone(place));
    void *driver = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
