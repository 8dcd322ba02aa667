/* Two threads look names up without pause while the driver is opened: no answer may be null or lead nowhere. */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static const char *const names[] = { "cuInit", "cuMemAlloc_v2", "cuDriverGetVersion", "cuMemFree_v2" };
static _Atomic(void *) opened;
static atomic_ulong wrong;

static void *look(void *unused)
{
    const void *last[4] = { 0 };
    void *cuda;
    while (!(cuda = atomic_load(&opened)))
        if (!dlsym(RTLD_DEFAULT, "malloc") || dlsym(RTLD_DEFAULT, "cu_no_such_name"))
            atomic_fetch_add(&wrong, 1);
    for (int round = 0; round < 1000000; round++) {
        const void *found = dlsym(cuda, names[round % 4]);
        if (found != last[round % 4]) {
            const char *where = object_of(found);
            if (!found || (strcmp(where, "libgpucap.so") && strcmp(where, "libcuda.so.1")))
                atomic_fetch_add(&wrong, 1);
            last[round % 4] = found;
        }
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, look, NULL);
    atomic_store(&opened, some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda"));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("wrong=%lu\n", atomic_load(&wrong));
#define LOOK(name) BY(dlsym, opened, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
