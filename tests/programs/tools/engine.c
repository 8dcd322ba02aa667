/*
 * argv: ID BUNDLE RUNTIME OPTION... Has the runtime make a container, as an engine has it: `create`, `start`, and
 * `delete` when its first process has ended, for which this process waits by itself. That process has our own input
 * and output. Ends as it did, or as the first of the runtime's commands that did not succeed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* How this process ends; the container may end before the command that starts it does. */
static int ended(pid_t process)
{
    int status = 0;
    return waitpid(process, &status, 0) == process ? code_of(status) : 127;
}

/* The runtime's own words, and these behind them. */
static int tell(char **runtime, char **words)
{
    char *all[64];
    int count = 0;
    for (int i = 0; runtime[i] && count < 32; i++)
        all[count++] = runtime[i];
    for (int i = 0; words[i]; i++)
        all[count++] = words[i];
    all[count] = NULL;
    pid_t child = fork();
    if (child == 0) {
        execvp(all[0], all);
        _exit(127);
    }
    return ended(child);
}

int main(int argc, char **argv)
{
    char file[4096];
    int code, pid = 0, gone;
    /* The runtime ends before the container; who started it becomes the parent of what it leaves. */
    if (argc < 4 || prctl(PR_SET_CHILD_SUBREAPER, 1) || snprintf(file, sizeof file, "%s/engine.pid", argv[2]) < 0)
        return 2;
    char *id = argv[1], **runtime = argv + 3;
    if ((code = tell(runtime, (char *[]){ "create", "--bundle", argv[2], "--pid-file", file, id, NULL })))
        return code;
    FILE *stream = fopen(file, "r");
    if (!stream || fscanf(stream, "%d", &pid) != 1 || (code = tell(runtime, (char *[]){ "start", id, NULL })))
        return code ? code : 2;
    code = ended(pid);
    gone = tell(runtime, (char *[]){ "delete", id, NULL });
    return code ? code : gone;
}
