/* dlsym itself is looked up behind the shim, with the version that libc gives it, before anything else. */
#include "route.h"

int main(void)
{
    void *(*look)(void *, const char *) = some(dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC), "dlsym");
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(look, cuda, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
