/* Has no environment any more when it opens the driver, as a daemon that cleans up after its start. */
#include "route.h"

int main(void)
{
    clearenv();
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    struct cuda cuda = { CUDA_ROUTE(LOOK) };
    return report(&cuda);
}
