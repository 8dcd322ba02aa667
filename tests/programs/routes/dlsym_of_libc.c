/* dlsym itself is looked up in libc, before anything else, and used from then on. */
#include "route.h"

int main(void)
{
    void *libc = some(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "libc");
    void *(*look)(void *, const char *) = some(dlsym(libc, "dlsym"), "dlsym");
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(look, cuda, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
