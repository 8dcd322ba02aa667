/* RTLD_NEXT is relative to who asks: each library must get the definition of the library after it. */
#include <dlfcn.h>
#include <stdio.h>

int ask1(void);
int ask2(void);
int ask3(void);
int foo(void);

int main(void)
{
    int (*first)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "foo");
    printf("default=%d\nnext1=%d\nnext2=%d\nnext3=%d\n", first ? first() : 0, ask1(), ask2(), ask3());
    return 0;
}
