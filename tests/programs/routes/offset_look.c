/*
 * argv: LIBRARY. Looks a function up in a library that asks for the address ASKED and does not get it, so that nothing
 * lies at what the loader calls its load address, once there is a second namespace.
 */
#include "route.h"

#include <link.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap((void *)ASKED, 1 << 20, PROT_NONE, flags, -1, 0) != (void *)ASKED)
        skip("the address that the library asks for is taken");
    struct link_map *library = some(dlopen(argv[1], RTLD_NOW), argv[1]);
    some(dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW), "libm in a namespace of its own");
    printf("elsewhere=%d\nfound=%d\n", library->l_addr != 0, dlsym(library, "foo") != NULL);
    return 0;
}
