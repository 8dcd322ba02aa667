/* The driver is opened in a namespace of its own and closed again, ROUNDS times, and then once more to stay. */
#include "unload.h"

#define ROUNDS 20
#define LOOK(name) BY(dlsym, driver, name)

int main(void)
{
    int caught = 0, gone = 0;
    for (int round = 0; round < ROUNDS; round++) {
        void *driver = some(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW), "libcuda");
        void *place = place_of(driver);
        caught += strcmp(object_of(some(dlsym(driver, "cuMemAlloc_v2"), "cuMemAlloc_v2")), "libgpucap.so") == 0;
        if (dlclose(driver))
            return 1;
        gone += is_gone(place);
    }
    printf("rounds=%d\ncaught=%d\ngone=%d\n", ROUNDS, caught, gone);
    void *driver = some(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW), "libcuda");
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
