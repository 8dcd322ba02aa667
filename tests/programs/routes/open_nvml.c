/* NVML, opened and looked up; argv[1] says how the loader shall bind its calls to itself. */
#include "route.h"

int main(int argc, char **argv)
{
    int mode = argc > 1 && strcmp(argv[1], "lazy") == 0 ? RTLD_LAZY : RTLD_NOW;
    void *library = some(dlopen("libnvidia-ml.so.1", mode), "libnvidia-ml");
#define LOOK(name) BY(dlsym, library, name)
    struct nvml found = { NVML_ROUTE(LOOK) };
    return report_nvml(&found);
}
