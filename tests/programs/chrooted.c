/* Changes its root before it loads the driver, which lies in the new one: the limits file does not. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2 || !dlopen("libgcc_s.so.1", RTLD_NOW) || chroot(argv[1]) || chdir("/"))
        return 77;
    void *cuda = dlopen("/libcuda.so.1", RTLD_NOW);
    cuInit_fn init = cuda ? (cuInit_fn)dlsym(cuda, "cuInit") : NULL;
    if (!init) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("init=%u\n", init(0));
    return 0;
}
