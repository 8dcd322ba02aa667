/*
 * Which driver and NVML names real programs ask for: each program runs with the spy library (spy.c)
 * preloaded, and the spy's notes become its answer. A program that is not here is skipped.
 */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct program {
    const char *name;
    double limit_s;
    const char *args[4];
} programs[] = {
    {"runtime_static", 15, {"runtime-static", NULL}},
    {"runtime_shared", 15, {"runtime-shared", NULL}},
    {"nvidia_smi", 15, {"nvidia-smi", NULL}},
    {"pytorch",
     60,
     {"python3", "-c",
      "import torch\n"
      "x = torch.zeros(1000, device='cuda')\n"
      "(x + 1).sum().item()\n"
      "torch.cuda.mem_get_info()\n",
      NULL}},
    {"cupy", 40, {"python3", "-c", "import cupy; float(cupy.zeros(1000).sum())", NULL}},
};

/* The path of a program: built beside this one, or on the PATH; NULL if it is nowhere. */
static char *find_program(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", probe_dir(), name);
    if (access(path, X_OK) == 0) return strdup(path);
    const char *list = getenv("PATH");
    for (const char *at = list; at != NULL && *at != '\0'; at += strspn(at, ":")) {
        size_t length = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
        if (length != 0 && access(path, X_OK) == 0) return strdup(path);
        at += length;
    }
    return NULL;
}

static _Noreturn void become(const char *path, const struct program *program, const char *log,
                             int errors) {
    char spy[4096];
    char *args[ARRAY_LEN(program->args) + 1] = {0};
    snprintf(spy, sizeof spy, "%s/spy.so", probe_dir());
    setenv("LD_PRELOAD", spy, 1);
    setenv("PROBE_SPY", log, 1);
    for (size_t i = 0; i < ARRAY_LEN(program->args) && program->args[i] != NULL; i++)
        args[i] = strdup(program->args[i]);
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execv(path, args);
    _exit(127);
}

/* How it ended: 0 well, -1 stopped at its limit, else its status. */
static int run_program(const char *path, const struct program *program, const char *log,
                       int errors) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) become(path, program, log, errors);
    double end = now_ns() + program->limit_s * 1e9;
    pid_t done;
    while ((done = waitpid(child, &status, WNOHANG)) == 0 && now_ns() < end) sleep_us(5000);
    if (done != 0) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return -1;
}

/* ---- the spy's notes ---- */

static int by_text(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Answers with the sorted, distinct notes of one sort. */
static void answer_notes(const char *program, const char *sort, char **notes, size_t count) {
    char key[80];
    struct text json = {0}, text = {0};
    size_t distinct = 0, prefix = strlen(sort);
    text_add(&json, "[");
    for (size_t i = 0; i < count; i++) {
        if (strncmp(notes[i], sort, prefix) != 0 || notes[i][prefix] != ' ') continue;
        if (i > 0 && strcmp(notes[i], notes[i - 1]) == 0) continue;
        text_add(&json, "%s", distinct++ == 0 ? "" : ",");
        text_add_string(&json, notes[i] + prefix + 1);
    }
    text_add(&json, "]");
    text_add(&text, "%zu distinct", distinct);
    snprintf(key, sizeof key, "%s_%s", program, sort);
    answer_json(key, json.bytes, text.bytes);
    free(json.bytes);
    free(text.bytes);
}

static void read_notes(const char *program, const char *path) {
    FILE *file = fopen(path, "r");
    char *line = NULL, **notes = NULL;
    size_t room = 0, count = 0, most = 0;
    ssize_t length;
    while (file != NULL && (length = getline(&line, &room, file)) > 0) {
        if (line[length - 1] == '\n') line[length - 1] = '\0';
        if (count == most) notes = realloc(notes, (most = 2 * most + 64) * sizeof *notes);
        if (notes == NULL || (notes[count++] = strdup(line)) == NULL) abort();
    }
    if (file != NULL) fclose(file);
    if (count != 0) qsort(notes, count, sizeof *notes, by_text);
    answer_notes(program, "dlsym", notes, count);
    answer_notes(program, "proc", notes, count);
    answer_notes(program, "import", notes, count);
    for (size_t i = 0; i < count; i++) free(notes[i]);
    free(notes);
    free(line);
}

/* The last line that the program wrote to its standard error. */
static void last_line(int fd, char *line, size_t room) {
    char bytes[2048];
    off_t end = lseek(fd, 0, SEEK_END);
    off_t start = end > (off_t)sizeof bytes - 1 ? end - (off_t)sizeof bytes + 1 : 0;
    ssize_t length = pread(fd, bytes, sizeof bytes - 1, start);
    bytes[length > 0 ? length : 0] = '\0';
    while (length > 0 && bytes[length - 1] == '\n') bytes[--length] = '\0';
    const char *at = strrchr(bytes, '\n');
    snprintf(line, room, "%.150s", at != NULL ? at + 1 : bytes);
}

static bool is_empty(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && status.st_size == 0;
}

static void observe(const struct program *program) {
    char log[4096], line[200];
    char *path = find_program(program->args[0]);
    if (path == NULL) {
        answer_skipped(program->name, "%s is not here", program->args[0]);
        return;
    }
    snprintf(log, sizeof log, "%s/spy.%s.log", probe_dir(), program->name);
    unlink(log);
    FILE *errors = tmpfile();
    if (errors == NULL) fail("tmpfile");
    double start = now_ns();
    int status = run_program(path, program, log, fileno(errors));
    last_line(fileno(errors), line, sizeof line);
    fclose(errors);
    free(path);
    if (status > 0 && is_empty(log)) {
        answer_skipped(program->name, "it asked for nothing and ended with status %d: %s", status,
                       line);
        return;
    }
    if (status == 0) answer_text(program->name, "ran well in %.1f s", (now_ns() - start) / 1e9);
    else if (status < 0) answer_text(program->name, "stopped after %.0f s", program->limit_s);
    else answer_text(program->name, "ended with status %d: %s", status, line);
    read_notes(program->name, log);
}

void stage_names(void) {
    char spy[4096];
    snprintf(spy, sizeof spy, "%s/spy.so", probe_dir());
    if (access(spy, R_OK) != 0) skip("the spy library was not built: %s", spy);
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) observe(&programs[i]);
}
