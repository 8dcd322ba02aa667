/* What an image could have preloaded: notes down, at a path that only the host has, which program it is loaded into. */
#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void witness(void)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    int file = open(WITNESS, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (length > 0 && file >= 0) {
        program[length++] = '\n';
        (void)!write(file, program, (size_t)length);
    }
}
