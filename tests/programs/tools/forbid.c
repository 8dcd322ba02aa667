/*
 * Runs a program for which system calls are missing, as on an older kernel, or deadly:
 *
 *   forbid (ERRNO|kill) NUMBER[,NUMBER...] PROGRAM [ARGUMENT...]
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **words)
{
    struct sock_filter code[64] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
    unsigned short length = 1;
    if (count < 4)
        return 2;
    int answer = strcmp(words[1], "kill") ? (int)SECCOMP_RET_ERRNO | atoi(words[1]) : (int)SECCOMP_RET_KILL_PROCESS;
    for (char *number = strtok(words[2], ","); number && length < 60; number = strtok(NULL, ",")) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(number), 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = { .len = length, .filter = code };
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 126;
    execv(words[3], words + 3);
    return 127;
}
