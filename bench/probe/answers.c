/*
 * Answers travel from a stage to the parent as lines `kind TAB key TAB json TAB text`, each written
 * by one call, so that a killed stage leaves only whole lines behind.
 */
#include "probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int answers_fd = STDOUT_FILENO;

void answers_to(int fd) { answers_fd = fd; }

static void grow(struct text *text, size_t more) {
    if (text->length + more + 1 <= text->room) return;
    text->room = 2 * (text->length + more + 1);
    text->bytes = realloc(text->bytes, text->room);
    if (text->bytes == NULL) abort();
}

static void text_add_list(struct text *text, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) abort();
    grow(text, (size_t)length);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, args);
    text->length += (size_t)length;
}

void text_add(struct text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_add_list(text, format, args);
    va_end(args);
}

void text_add_string(struct text *text, const char *string) {
    text_add(text, "\"");
    for (const char *c = string; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            text_add(text, "\\%c", *c);
        } else if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f) {
            /* Control characters and anything that might not be UTF-8: by number, as a Latin-1
             * letter. */
            text_add(text, "\\u%04x", (unsigned char)*c);
        } else {
            text_add(text, "%c", *c);
        }
    }
    text_add(text, "\"");
}

/* The text column must not break the line. */
static void send_line(char kind, const char *key, const char *json, const char *human) {
    struct text line = {0};
    text_add(&line, "%c\t%s\t%s\t", kind, key, json);
    for (const char *c = human; *c != '\0'; c++)
        text_add(&line, "%c", *c == '\n' || *c == '\t' ? ' ' : *c);
    text_add(&line, "\n");
    for (size_t sent = 0; sent < line.length;) {
        ssize_t part = write(answers_fd, line.bytes + sent, line.length - sent);
        if (part <= 0) break;
        sent += (size_t)part;
    }
    free(line.bytes);
}

void answer_json(const char *key, const char *json, const char *text) {
    send_line('A', key, json, text);
}

static void send_string(char kind, const char *key, const char *format, va_list args) {
    struct text human = {0}, json = {0};
    text_add_list(&human, format, args);
    text_add_string(&json, human.bytes);
    if (kind == 'N') {
        struct text object = {0};
        text_add(&object, "{\"skipped\":%s}", json.bytes);
        struct text shown = {0};
        text_add(&shown, "skipped: %s", human.bytes);
        send_line('A', key, object.bytes, shown.bytes);
        free(object.bytes);
        free(shown.bytes);
    } else {
        send_line(kind, key, json.bytes, human.bytes);
    }
    free(human.bytes);
    free(json.bytes);
}

void answer_text(const char *key, const char *format, ...) {
    va_list args;
    va_start(args, format);
    send_string('A', key, format, args);
    va_end(args);
}

void answer_skipped(const char *key, const char *format, ...) {
    va_list args;
    va_start(args, format);
    send_string('N', key, format, args);
    va_end(args);
}

void answer_flag(const char *key, bool value) {
    answer_json(key, value ? "true" : "false", value ? "yes" : "no");
}

void answer_number(const char *key, const char *unit, double value) {
    char json[160], text[96];
    snprintf(json, sizeof json, "{\"value\":%.10g,\"unit\":\"%s\"}", value, unit);
    snprintf(text, sizeof text, "%.10g %s", value, unit);
    answer_json(key, json, text);
}

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void answer_spread(const char *key, const char *unit, double *samples, size_t count) {
    if (count == 0) {
        answer_skipped(key, "no sample");
        return;
    }
    qsort(samples, count, sizeof *samples, by_value);
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += samples[i];
    double p50 = samples[count / 2], p90 = samples[count * 9 / 10], p99 = samples[count * 99 / 100];
    double least = samples[0], most = samples[count - 1], mean = sum / (double)count;
    char json[400], text[200];
    snprintf(json, sizeof json,
             "{\"unit\":\"%s\",\"n\":%zu,\"min\":%.8g,\"p50\":%.8g,\"p90\":%.8g,\"p99\":%.8g,"
             "\"max\":%.8g,\"mean\":%.8g}",
             unit, count, least, p50, p90, p99, most, mean);
    snprintf(text, sizeof text, "%.5g %s  (min %.5g, p90 %.5g, p99 %.5g, max %.5g, n %zu)", p50,
             unit, least, p90, p99, most, count);
    answer_json(key, json, text);
}

void skip(const char *format, ...) {
    va_list args;
    va_start(args, format);
    send_string('S', "", format, args);
    va_end(args);
    _exit(0);
}

void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    send_string('F', "", format, args);
    va_end(args);
    _exit(1);
}
