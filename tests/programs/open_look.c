/* The ordinary way: dlopen, then dlsym; of libcuda.so.1 or of the file that is named. */
#include "route.h"

int main(int argc, char **argv)
{
    void *cuda = some(dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, cuda, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
