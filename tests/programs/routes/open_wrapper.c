/* A library linked to libcuda is opened (argv[1]) and called; the program itself never names the driver. */
#include "route.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int deep = strcmp(argv[2], "deepbind") == 0 ? RTLD_DEEPBIND : 0;
    void *wrapper = some(strcmp(argv[2], "namespace") == 0 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW)
                                                           : dlopen(argv[1], RTLD_NOW | deep), argv[1]);
    int (*call)(void) = some(dlsym(wrapper, "wrapper_report"), "wrapper_report");
    return call();
}
