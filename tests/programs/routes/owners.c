/*
 * Prints in which object each function lies, as each way of asking answers. Arguments come in fours: symbol, base name,
 * version and flags for cuGetProcAddress_v2. Linked with -lcuda: what the loader bound before any code ran counts too.
 */
#include "route.h"

static void *const bound[] = { (void *)cuLaunchKernel, (void *)cuStreamSynchronize, (void *)cuMemAlloc_v2 };

int main(int argc, char **argv)
{
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    cuGetProcAddress_v2_fn ask = (cuGetProcAddress_v2_fn)dlsym(cuda, "cuGetProcAddress_v2");
    for (int i = 1; i + 3 < argc; i += 4) {
        void *symbol = dlsym(cuda, argv[i]), *found = NULL;
        CUdriverProcAddressQueryResult status;
        if (!symbol) /* an older driver */
            continue;
        if (ask && ask(argv[i + 1], &found, atoi(argv[i + 2]), strtoull(argv[i + 3], NULL, 0), &status))
            found = NULL;
        printf("%s=%s\n", argv[i], object_of(symbol));
        printf("%s by cuGetProcAddress=%s\n", argv[i], found ? found == symbol ? object_of(found) : "another" : "none");
    }
    void *const *volatile hidden = bound; /* the compiler must not see through */
    printf("bound cuLaunchKernel=%s\n", object_of(hidden[0]));
    printf("bound cuStreamSynchronize=%s\n", object_of(hidden[1]));
    printf("bound cuMemAlloc_v2=%s\n", object_of(hidden[2]));
    return 0;
}
