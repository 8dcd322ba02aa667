/* The ordinary way: dlopen, then dlsym. */
#include "route.h"

int main(void)
{
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, cuda, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
