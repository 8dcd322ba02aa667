/* cuGetProcAddress_v2, by way of an answer of itself: what CUDA 12 and 13 runtimes do. */
#include "route.h"

static void *ask(void *get, const char *symbol)
{
    char base[64];
    snprintf(base, sizeof base, "%s", symbol);
    char *suffix = strstr(base, "_v2");
    if (suffix)
        *suffix = 0;
    void *found = NULL;
    CUdriverProcAddressQueryResult status = -1;
    CUresult result = ((cuGetProcAddress_v2_fn)get)(base, &found, 12000, 0, &status);
    if (result || status)
        fprintf(stderr, "cuGetProcAddress_v2(%s): %u, status %d\n", base, result, status);
    return found;
}

int main(void)
{
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    void *get = dlsym(cuda, "cuGetProcAddress_v2");
    if (!get)
        skip("this driver is older than cuGetProcAddress_v2");
    get = some(ask(get, "cuGetProcAddress"), "nested cuGetProcAddress");
#define LOOK(name) BY(ask, get, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
