/*
 * Runs the stages one after another, each in a process group of its own under a time limit, and
 * writes what they answered: one line per stage to FILE.jsonl as it ends, the whole document to
 * FILE after each stage, and a table for people at the end. This process itself never loads the
 * driver, so a stage can hang or crash without harm.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct stage {
    const char *name;
    void (*run)(void);
    double limit_s;
    const char *question;
} stages[] = {
    /* What decides most comes first, in case the time runs out. */
    {"card", stage_card, 15, "which card, driver and machine this is"},
    {"load", stage_load, 10, "what the loader sees of the driver's libraries"},
    {"lookup", stage_lookup, 20, "whether cuGetProcAddress answers what dlsym answers"},
    {"context", stage_context, 20, "what a context costs in device memory"},
    {"pids", stage_pids, 15, "which processes NVML shows"},
    {"launch", stage_launch, 25, "what launches, events and other calls cost the host"},
    {"pairs", stage_pairs, 20, "what an event pair around a kernel contains"},
    {"beside", stage_beside, 25, "whether an event waits for a turn of its process"},
    {"queue", stage_queue, 15, "how many launches a stream takes before one waits"},
    {"slices", stage_slices, 25, "how the card takes turns between processes"},
    {"streams", stage_streams, 15, "what waits for what, and what a capture forbids"},
    {"granularity", stage_granularity, 30, "what an allocation of each kind takes from the card"},
    {"wake", stage_wake, 15, "how late a sleeping thread wakes"},
    {"sampled", stage_sampled, 25, "what the driver's samples of processes are like"},
    {"names", stage_names, 90, "which names the runtime and PyTorch ask for"},
};

struct options {
    const char *only, *out, *commit;
    double budget_s;
};

/* The document so far. */
static struct text document, table;
static bool all_well = true;

static void write_file(const char *path, const char *mode, const struct text *text) {
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.part", path);
    FILE *file = fopen(mode[0] == 'a' ? path : temporary, mode);
    if (file == NULL) {
        fprintf(stderr, "probe: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    fwrite(text->bytes, 1, text->length, file);
    fputc('\n', file);
    if (fclose(file) != 0 || (mode[0] == 'w' && rename(temporary, path) != 0)) {
        fprintf(stderr, "probe: %s: %s\n", path, strerror(errno));
        exit(2);
    }
}

/* The file of single lines beside the document. */
static const char *lines_path(const struct options *options) {
    static char path[4096];
    snprintf(path, sizeof path, "%sl", options->out);
    return path;
}

/* Starts the document: what is known without the card. */
static void open_document(const struct options *options) {
    unlink(lines_path(options));
    struct utsname machine;
    char date[32];
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    uname(&machine);
    text_add(&document, "{\"probe\":1,\"date\":\"%s\",\"commit\":", date);
    text_add_string(&document, options->commit);
    text_add(&document, ",\"kernel\":");
    text_add_string(&document, machine.release);
    text_add(&document, ",\"cpus\":%ld,\"quick\":%s", sysconf(_SC_NPROCESSORS_ONLN),
             getenv("PROBE_QUICK") != NULL ? "true" : "false");
}

/* The next column of a line, which ends at a tab. */
static char *column(char **rest) {
    char *start = *rest, *tab = strchr(start, '\t');
    if (tab != NULL) *tab = '\0';
    *rest = tab != NULL ? tab + 1 : start + strlen(start);
    return start;
}

struct outcome {
    const char *status; /* ok, skipped, failed, cut short */
    struct text reason, answers;
};

/* What the head of the document repeats from the stage `card`. */
static bool belongs_in_head(const char *key) {
    return strcmp(key, "gpu") == 0 || strcmp(key, "driver") == 0 || strcmp(key, "cuda") == 0;
}

/* Turns the lines that a stage left into its answers; `outcome->status` may change to skipped or
 * failed. */
static void read_answers(const struct stage *stage, FILE *lines, struct outcome *outcome) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    rewind(lines);
    while ((length = getline(&line, &room, lines)) > 0 && line[length - 1] == '\n') {
        line[length - 1] = '\0';
        char *rest = line;
        char kind = *column(&rest);
        char *key = column(&rest), *json = column(&rest);
        if (kind == 'S' || kind == 'F') {
            outcome->status = kind == 'S' ? "skipped" : "failed";
            outcome->reason.length = 0;
            text_add(&outcome->reason, "%s", rest);
            continue;
        }
        if (stage == &stages[0] && belongs_in_head(key))
            text_add(&document, ",\"%s\":%s", key, json);
        text_add(&outcome->answers, "%s", outcome->answers.length == 0 ? "" : ",");
        text_add_string(&outcome->answers, key);
        text_add(&outcome->answers, ":%s", json);
        text_add(&table, "  %-40s %.150s\n", key, rest);
    }
    free(line);
}

/* Waits for the stage; afterwards nothing of its process group lives. */
static void wait_for(pid_t stage, double limit_s, struct outcome *outcome) {
    double end = now_ns() + limit_s * 1e9;
    int status = 0;
    pid_t done;
    while ((done = waitpid(stage, &status, WNOHANG)) == 0 && now_ns() < end) sleep_us(2000);
    kill(-stage, SIGKILL);
    if (done == 0) {
        waitpid(stage, &status, 0);
        outcome->status = "cut short";
        text_add(&outcome->reason, "stopped after %.0f s", limit_s);
    } else if (WIFSIGNALED(status)) {
        outcome->status = "failed";
        text_add(&outcome->reason, "died of signal %d", WTERMSIG(status));
    } else if (WEXITSTATUS(status) != 0) {
        outcome->status = "failed";
        text_add(&outcome->reason, "exit status %d", WEXITSTATUS(status));
    }
}

/* Where no persistence daemon runs, a card that no process has open takes seconds to open: one process
 * keeps it open. */
static pid_t keep_card_open(void) {
    pid_t keeper = fork();
    if (keeper != 0) return keeper;
    const char *why_not;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (nvml_open(&why_not)) pause();
    _exit(0);
}

static void run_in_child(const struct stage *stage, int fd) {
    setpgid(0, 0);
    answers_to(fd);
    stage->run();
    _exit(0);
}

/* Adds a stage's outcome to the document, the file of lines and the table. */
static void record(const struct stage *stage, const struct options *options,
                   const struct outcome *outcome, double seconds, size_t table_at) {
    const char *reason = outcome->reason.length != 0 ? outcome->reason.bytes : "";
    const char *colon = outcome->reason.length != 0 ? ": " : "";
    struct text line = {0}, part = {0}, whole = {0};
    text_add(&line, "{\"stage\":\"%s\",\"status\":\"%s\",\"seconds\":%.3f", stage->name,
             outcome->status, seconds);
    if (outcome->reason.length != 0) {
        text_add(&line, ",\"reason\":");
        text_add_string(&line, reason);
    }
    text_add(&line, ",\"answers\":{%s}}",
             outcome->answers.length != 0 ? outcome->answers.bytes : "");
    fprintf(stderr, "%-12s %-9s %6.1f s  %s\n", stage->name, outcome->status, seconds, reason);

    /* The heading of this stage's part of the table, before its answers. */
    text_add(&part, "%s: %s (%s%s%s)\n%s", stage->name, stage->question, outcome->status, colon,
             reason, table.length > table_at ? table.bytes + table_at : "");
    table.length = table_at;
    text_add(&table, "%s", part.bytes);

    write_file(lines_path(options), "a", &line);
    text_add(&document, ",\"%s\":%s", stage->name, line.bytes);
    text_add(&whole, "%s}", document.bytes);
    write_file(options->out, "w", &whole);
    free(whole.bytes);
    free(part.bytes);
    free(line.bytes);
    if (strcmp(outcome->status, "ok") != 0 && strcmp(outcome->status, "skipped") != 0)
        all_well = false;
}

static void run_stage(const struct stage *stage, const struct options *options, double limit_s) {
    struct outcome outcome = {.status = "ok"};
    FILE *lines = tmpfile();
    if (lines == NULL) {
        perror("probe: tmpfile");
        exit(2);
    }
    fflush(NULL);
    double start = now_ns();
    size_t table_at = table.length;
    pid_t child = fork();
    if (child == 0) run_in_child(stage, fileno(lines));
    setpgid(child, child);
    wait_for(child, limit_s, &outcome);
    double seconds = (now_ns() - start) / 1e9;
    read_answers(stage, lines, &outcome);
    fclose(lines);
    record(stage, options, &outcome, seconds, table_at);
    free(outcome.reason.bytes);
    free(outcome.answers.bytes);
}

static void record_not_run(const struct stage *stage, const struct options *options) {
    struct outcome outcome = {.status = "cut short"};
    text_add(&outcome.reason, "not begun: the budget of %.0f s is used up", options->budget_s);
    record(stage, options, &outcome, 0, table.length);
    free(outcome.reason.bytes);
}

/* Whether a list with commas holds the name. */
static bool listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

static void check_only(const char *only) {
    struct text list = {0};
    text_add(&list, "%s", only);
    for (char *name = strtok(list.bytes, ","); name != NULL; name = strtok(NULL, ",")) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(stages); i++) known |= strcmp(stages[i].name, name) == 0;
        if (known) continue;
        fprintf(stderr, "probe: no stage %s; see --list\n", name);
        exit(2);
    }
    free(list.bytes);
}

static _Noreturn void usage(int status) {
    fprintf(status == 0 ? stdout : stderr,
            "usage: probe --out FILE.json [--only STAGE,...] [--budget SECONDS] [--commit ID]\n    "
            "   probe --list\n");
    exit(status);
}

static struct options parse(char **args) {
    struct options options = {.commit = "unknown", .budget_s = 170};
    for (args++; *args != NULL; args++) {
        const char *name = *args;
        if (strcmp(name, "--help") == 0) usage(0);
        if (strcmp(name, "--list") == 0) {
            for (size_t i = 0; i < ARRAY_LEN(stages); i++)
                printf("%-12s %s\n", stages[i].name, stages[i].question);
            exit(0);
        }
        if (args[1] == NULL) usage(2);
        const char *value = *++args;
        char *rest = "";
        if (strcmp(name, "--only") == 0) options.only = value;
        else if (strcmp(name, "--out") == 0) options.out = value;
        else if (strcmp(name, "--commit") == 0) options.commit = value;
        else if (strcmp(name, "--budget") == 0) options.budget_s = strtod(value, &rest);
        else usage(2);
        if (strcmp(rest, "") != 0 && strcmp(rest, "s") != 0) usage(2);
    }
    if (options.out == NULL || options.budget_s <= 0) usage(2);
    if (options.only != NULL) check_only(options.only);
    return options;
}

int main(int argc, char **argv) {
    (void)argc;
    struct options options = parse(argv);
    double end = now_ns() + options.budget_s * 1e9;
    open_document(&options);
    pid_t keeper = keep_card_open();
    for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
        /* The answers mean nothing without the card that gave them: its stage always runs. */
        if (i != 0 && options.only != NULL && !listed(options.only, stages[i].name)) continue;
        double left_s = (end - now_ns()) / 1e9;
        double limit_s = left_s < stages[i].limit_s ? left_s : stages[i].limit_s;
        if (left_s < 1) record_not_run(&stages[i], &options);
        else run_stage(&stages[i], &options, limit_s);
    }
    kill(keeper, SIGKILL);
    waitpid(keeper, NULL, 0);
    printf("\n%s", table.length != 0 ? table.bytes : "");
    return all_well ? 0 : 1;
}
