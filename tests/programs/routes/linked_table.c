/* Linked with -lcuda, calling through a table of function pointers that the loader filled before any code ran. */
#include "route.h"

#define ENTRY(name) name,
static struct cuda table = { CUDA_ROUTE(ENTRY) };

int main(void)
{
    struct cuda *volatile hidden = &table;
    return report(hidden);
}
