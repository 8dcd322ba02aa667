/*
 * as_pid PID PROGRAM [ARGUMENT]...: runs a program in a child process of this number, as soon as no other process has it.
 * Needs CAP_CHECKPOINT_RESTORE in the pid namespace. Ends as the program does.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    pid_t wanted = argc > 2 ? atoi(argv[1]) : 0;
    struct clone_args arguments = {
        .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&wanted, .set_tid_size = 1
    };
    long child;
    int status;
    // The number is free once the process before has been waited for.
    while ((child = syscall(SYS_clone3, &arguments, sizeof arguments)) < 0 && errno == EEXIST)
        usleep(1000);
    if (child < 0) {
        perror("clone3");
        return 125;
    }
    if (!child) {
        execv(argv[2], argv + 2);
        _exit(127);
    }
    if (waitpid((pid_t)child, &status, 0) != child || !WIFEXITED(status))
        return 126;
    return WEXITSTATUS(status);
}
