/* Takes a little of the static memory of threads, as libraries do that are made to be there from the start. */
static __thread char own[32];

char *greedy(void);

char *greedy(void)
{
    return own;
}
