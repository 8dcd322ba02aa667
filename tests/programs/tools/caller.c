/*
 * Calls any function of the driver or of NVML by its name, with arguments as they are written on a line of stdin, and
 * prints the answer and everything that the function could have written.
 *
 *   call NAME ARGUMENT...   a number; `a` to `h`: a slot's value; `&a`: the slot; `%0` to `%3`, `%0+8`: a buffer; `'text`;
 *                           `@`: a function that takes 4 ms
 *   ask NAME ARGUMENT...    the same, then puts 1 or 0 into slot `a`, for an address or a handle that may differ
 *   hide NAME ARGUMENT...   the same as call, without showing buffers, for structures with bytes that mean nothing
 *   byvalue NAME POINTER    with a second argument of 64 bytes, buffer 0, and 1 as the third
 *   poke BUFFER OFFSET BYTES VALUE
 *   put BUFFER OFFSET SLOT      a slot's value, 8 bytes
 *
 * What has not been written shows as 11 in each byte, but for buffer 0, which is for structures and begins as zeros.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned int function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t);

#ifdef NO_THREADS
/* As where the system allows no further thread; exported to all libraries. */
int pthread_create(void *thread, const void *attributes, void *(*start)(void *), void *argument)
{
    (void)thread, (void)attributes, (void)start, (void)argument;
    return EAGAIN;
}
#endif

static uint64_t slots[8];
static unsigned char buffers[4][256];
static void *libraries[2];

/* What the driver may call back, with whatever arguments. */
static void called_back(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 4000000 }, NULL);
}

static uint64_t argument(const char *word)
{
    if (word[0] == '@')
        return (uint64_t)called_back;
    if (word[0] >= 'a' && word[0] <= 'h' && !word[1])
        return slots[word[0] - 'a'];
    if (word[0] == '&')
        return (uint64_t)&slots[word[1] - 'a'];
    if (word[0] == '%')
        return (uint64_t)buffers[word[1] - '0'] + (word[2] == '+' ? strtoull(word + 3, NULL, 0) : 0);
    if (word[0] == '\'')
        return (uint64_t)(word + 1);
    return strtoull(word, NULL, 0);
}

static void call(char *words)
{
    uint64_t given[11] = { 0 };
    char *name = strtok(words, " "), *word;
    for (int i = 0; i < 11 && (word = strtok(NULL, " ")); i++)
        given[i] = argument(word);
    function *address = dlsym(libraries[strncmp(name, "nvml", 4) == 0], name);
    if (address)
        printf("%u", address(given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7], given[8],
                             given[9], given[10]));
    else
        printf("absent");
}

/* A structure that does not fit into registers goes on the stack, behind no others. */
static void call_by_value(char *words)
{
    struct structure { char bytes[64]; } given;
    char *name = strtok(words, " ");
    uint64_t pointer = argument(strtok(NULL, " "));
    unsigned int (*address)(uint64_t, struct structure, unsigned int) = dlsym(libraries[0], name);
    memcpy(&given, buffers[0], sizeof given);
    if (address)
        printf("%u", address(pointer, given, 1));
    else
        printf("absent");
}

static void show(int with_buffers)
{
    for (int i = 0; i < 8; i++)
        printf(" %" PRIx64, slots[i]);
    uint32_t sum = 0;
    for (size_t i = 0; with_buffers && i < sizeof buffers; i++)
        sum = sum * 31 + ((unsigned char *)buffers)[i];
    printf(" %" PRIx32 "\n", sum);
    fflush(stdout);
}

int main(void)
{
    char line[512];
    memset(slots, 0x11, sizeof slots);
    memset(buffers + 1, 0x11, sizeof buffers - sizeof buffers[0]);
    libraries[0] = dlopen("libcuda.so.1", RTLD_NOW);
    libraries[1] = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!libraries[0] || !libraries[1])
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        unsigned int buffer, offset, bytes;
        uint64_t value;
        char slot[2];
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "poke %u %u %u %" SCNi64, &buffer, &offset, &bytes, (int64_t *)&value) == 4)
            memcpy(&buffers[buffer % 4][offset % 248], &value, bytes % 9);
        else if (sscanf(line, "put %u %u %1[a-h]", &buffer, &offset, slot) == 3)
            memcpy(&buffers[buffer % 4][offset % 248], &slots[slot[0] - 'a'], 8);
        else if (strncmp(line, "byvalue", 7) == 0)
            call_by_value(strchr(line, ' ') + 1);
        else
            call(strchr(line, ' ') + 1);
        if (strncmp(line, "ask", 3) == 0)
            slots[0] = slots[0] != 0;
        show(strncmp(line, "hide", 4) != 0 && strncmp(line, "put", 3) != 0);
    }
    return 0;
}
