/*
 * Preloaded ahead of the shim: seals all pages of libcuda (mseal, Linux 6.10) before any code of it runs, as a
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

void __gmon_start__(void);

/* Called while each library is initialised. */
void __gmon_start__(void)
{
    dl_iterate_phdr(seal, NULL); /* before the look-up, which may be the shim's moment to act */
    void (*next)(void) = (void (*)(void))dlsym(RTLD_NEXT, "__gmon_start__");
    if (next)
        next();
}
