/*
 * open_file FILE HOW: the driver library opened by another file name than its own, then dlsym.
 *   path        FILE itself, a link to the library or a copy of it
 *   descriptor  the library by the number of an open file
 *   memory      a copy that has no file name at all
 */
#include "route.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static int copy_in_memory(int file)
{
    struct stat status;
    int copy = memfd_create("copy", 0);
    if (copy < 0 || fstat(file, &status))
        skip("no memfd_create");
    for (off_t left = status.st_size, sent; left > 0; left -= sent)
        if ((sent = sendfile(copy, file, NULL, (size_t)left)) <= 0)
            skip("no sendfile");
    return copy;
}

int main(int argc, char **argv)
{
    char numbered[32];
    int file = argc == 3 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0)
        return 1;
    if (!strcmp(argv[2], "memory"))
        file = copy_in_memory(file);
    snprintf(numbered, sizeof numbered, "/proc/self/fd/%d", file);
    void *library = some(dlopen(strcmp(argv[2], "path") ? numbered : argv[1], RTLD_NOW), "the library");
#define LOOK(name) BY(dlsym, library, name)
    if (dlsym(library, "nvmlInit_v2")) {
        struct nvml found = { NVML_ROUTE(LOOK) };
        return report_nvml(&found);
    }
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
