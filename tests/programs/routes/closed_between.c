/* The driver is closed while it is being redirected (`closer`), ROUNDS times, and then opened to stay. */
#include "unload.h"

#define ROUNDS 20
#define LOOK(name) BY(dlsym, driver, name)

int main(void)
{
    int gone = 0;
    void **victim = some(dlsym(RTLD_DEFAULT, "victim"), "closer");
    for (int round = 0; round < ROUNDS; round++) {
        *victim = some(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "libcuda");
        void *place = place_of(*victim);
        if (dlsym(RTLD_DEFAULT, "cuInit"))
            return 1;
        gone += is_gone(place);
    }
    printf("rounds=%d\ngone=%d\n", ROUNDS, gone);
    void *driver = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
