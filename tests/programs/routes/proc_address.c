/* cuGetProcAddress asks for itself, and the answer finds everything else: what CUDA 11.3 to 11.8 runtimes do. */
#include "route.h"

static void *ask(void *get, const char *symbol)
{
    char base[64];
    snprintf(base, sizeof base, "%s", symbol);
    char *suffix = strstr(base, "_v2");
    if (suffix)
        *suffix = 0;
    void *found = NULL;
    CUresult result = ((cuGetProcAddress_fn)get)(base, &found, 11030, 0);
    if (result)
        fprintf(stderr, "cuGetProcAddress(%s): %u\n", base, result);
    return found;
}

int main(void)
{
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    void *get = some(dlsym(cuda, "cuGetProcAddress"), "cuGetProcAddress");
    get = some(ask(get, "cuGetProcAddress"), "nested cuGetProcAddress");
#define LOOK(name) BY(ask, get, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
