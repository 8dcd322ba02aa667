/* The driver opened into the global scope, and looked up there. */
#include "route.h"

int main(void)
{
    some(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), "libcuda");
#define LOOK(name) BY(dlsym, RTLD_DEFAULT, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
