/*
 * Gives a file extended attributes until the file system takes no more, and says how many bytes that were.
 *
 *   attributes FILE MOST_BYTES
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>

int main(int count, char **words)
{
    static char value[4096];
    unsigned long bytes = 0, most = count > 2 ? strtoul(words[2], NULL, 10) : 0;
    char name[32];
    while (bytes < most) {
        snprintf(name, sizeof name, "user.x%lu", bytes);
        if (setxattr(words[1], name, value, sizeof value, 0))
            break;
        bytes += sizeof value;
    }
    printf("bytes=%lu\n", bytes);
    return 0;
}
