/*
 * Preloaded ahead of the shim: seals all pages of libcuda (mseal, Linux 6.10) as soon as its constructors run, as a
 * loader that seals what it maps would have done before.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int seal(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "libcuda.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        unsigned long start = (info->dlpi_addr + part->p_vaddr) & ~4095ul;
        unsigned long end = (info->dlpi_addr + part->p_vaddr + part->p_filesz + 4095) & ~4095ul;
        if (part->p_type == PT_LOAD && syscall(462, start, end - start, 0)) {
            perror("mseal");
            _exit(77);
        }
    }
    return 1;
}

int sched_get_priority_max(int policy)
{
    int (*next)(int) = (int (*)(int))dlvsym(RTLD_NEXT, "sched_get_priority_max", "GLIBC_2.2.5");
    dl_iterate_phdr(seal, NULL);
    return next ? next(policy) : -1;
}
