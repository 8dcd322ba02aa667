/*
 * Asks the driver for addresses, in every way it has, and prints where each lies.
 *
 * replay REQUESTS NAMES: REQUESTS has lines `NAME VERSION FLAGS ...` (`-` is the empty name) for cuGetProcAddress,
 * NAMES one symbol a line for dlsym. What is printed:
 *   symbol NAME OBJECT OFFSET                      a name that dlsym found
 *   answer WAY NAME VERSION FLAGS CODE STATUS OBJECT OFFSET
 * WAY is v1 (four arguments), v2 (five), or null (five, without a place for the status). OBJECT is the file in which
 * the address lies, `null`, or `untouched` if the driver wrote nothing.
 */
#include "route.h"

static char mark; /* what the driver was given to overwrite */

static void print_place(void *address)
{
    Dl_info info;
    if (!address)
        puts("null 0");
    else if (address == &mark)
        puts("untouched 0");
    else if (!dladdr(address, &info))
        puts("nowhere 0");
    else
        printf("%s %lu\n", object_of(address), (unsigned long)((char *)address - (char *)info.dli_fbase));
}

static void print_answer(const char *way, const char *name, int version, unsigned long flags, CUresult code,
                         int status, void *address)
{
    printf("answer %s %s %d %lu %u %d ", way, *name ? name : "-", version, flags, code, status);
    print_place(address);
}

static FILE *open_list(const char *path)
{
    return some(fopen(path, "r"), path);
}

int main(int count, char **words)
{
    char line[256], name[128];
    if (count != 3)
        return 2;
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    FILE *names = open_list(words[2]);
    while (fscanf(names, "%127s", name) == 1) {
        void *found = dlsym(cuda, name);
        if (found) {
            printf("symbol %s ", name);
            print_place(found);
        }
    }
    cuGetProcAddress_fn first = (cuGetProcAddress_fn)dlsym(cuda, "cuGetProcAddress");
    cuGetProcAddress_v2_fn second = (cuGetProcAddress_v2_fn)dlsym(cuda, "cuGetProcAddress_v2");
    FILE *requests = open_list(words[1]);
    while (fgets(line, sizeof line, requests)) {
        int version;
        unsigned long flags;
        if (sscanf(line, "%127s %d %lu", name, &version, &flags) != 3)
            continue;
        if (strcmp(name, "-") == 0)
            *name = 0;
        void *address = &mark;
        CUdriverProcAddressQueryResult status = -1;
        CUresult code;
        if (first) {
            code = first(name, &address, version, flags);
            print_answer("v1", name, version, flags, code, -1, address);
        }
        if (second) {
            address = &mark;
            code = second(name, &address, version, flags, &status);
            print_answer("v2", name, version, flags, code, status, address);
            address = &mark;
            code = second(name, &address, version, flags, NULL);
            print_answer("null", name, version, flags, code, -1, address);
        }
    }
    return 0;
}
