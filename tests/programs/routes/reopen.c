/* The driver is opened, looked up, closed and opened again; the second look-up must hold as the first did. */
#include "route.h"

int main(void)
{
    for (int round = 0; round < 3; round++) {
        void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
        int (*version)(int *) = some(dlsym(cuda, "cuDriverGetVersion"), "cuDriverGetVersion");
        void *alloc = some(dlsym(cuda, "cuMemAlloc_v2"), "cuMemAlloc_v2");
        int number = 0;
        printf("round%d=%s\nversion%d=%d\n", round, object_of(alloc), round, (version(&number), number));
        if (dlclose(cuda))
            return 1;
    }
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, cuda, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
