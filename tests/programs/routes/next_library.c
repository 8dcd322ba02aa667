/* One of three libraries that each define foo and ask for the next one: NUMBER says which. */
#include <dlfcn.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

int foo(void);
int JOIN(ask, NUMBER)(void);

int foo(void) { return NUMBER; }

int JOIN(ask, NUMBER)(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "foo");
    return next ? next() : 0;
}
