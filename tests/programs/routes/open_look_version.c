/* dlvsym for one of the driver's names. They have no version: what it finds depends on how the library was linked. */
#include "route.h"

int main(void)
{
    void *cuda = some(dlopen("libcuda.so.1", RTLD_LAZY), "libcuda");
    printf("any=%s\n", object_of(dlvsym(cuda, "cuInit", "ANY_1")));
    printf("libc=%s\n", object_of(dlvsym(cuda, "cuInit", FIRST_GLIBC)));
    return 0;
}
