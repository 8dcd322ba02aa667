/* As linked_table, but the table is constant: the loader makes its pages read-only before any code runs. */
#include "route.h"

#define ENTRY(name) name,
static const struct cuda table = { CUDA_ROUTE(ENTRY) };

int main(void)
{
    const struct cuda *volatile hidden = &table;
    return report(hidden);
}
