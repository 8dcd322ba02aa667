/* Lives until its input ends. */
#include <stdio.h>

int main(void)
{
    puts("0 0 0"); /* the answer that an actor would give: it is there */
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
