/* A program that uses no GPU and ends at once. */
int main(void)
{
    return 0;
}
