/* dlvsym. A library whose names have no version answers it or not, as its linker left it; real ones do not. */
#include "route.h"

int main(void)
{
    void *cuda = some(dlopen("libcuda.so.1", RTLD_LAZY), "libcuda");
    if (!dlvsym(cuda, "cuInit", "ANY_1"))
        skip("this driver's names cannot be found by version");
#define LOOK(name) .name = (name##_fn)some(dlvsym(cuda, #name, "ANY_1"), #name),
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
