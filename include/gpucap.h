/*
 * The public C face of gpucap: exit codes, and the layouts of the ledger and of the usage page.
 *
 * Exit codes of the command `gpucap`. `gpucap run` becomes the program that it starts, so every code below 125 may
 * then be the program's; the three last ones say, as with env(1) and nohup(1), that it never began.
 */
#ifndef GPUCAP_H
#define GPUCAP_H

#include <stdint.h>

/* ---- exit codes ---- */

/* Done. `explain`: the process is limited, or the container would be. */
#define GPUCAP_EXIT_OK 0
/* Could not be done; one line on stderr says what, where and why. `demo`: something was not as it should be. */
#define GPUCAP_EXIT_FAILED 1
/* The command line cannot be understood; of `run` that is GPUCAP_EXIT_NOT_RUN. */
#define GPUCAP_EXIT_USAGE 2
/* `explain`: the process is not limited, nor would the container be. `check`: nothing in the image loads the library. */
#define GPUCAP_EXIT_NOT_CAPPED 3
/* `explain`: limits are set that cannot be used, and the process is allowed no GPU work; or the container is refused. */
#define GPUCAP_EXIT_BROKEN 4
/* `hook`: this version does not know the stage. */
#define GPUCAP_EXIT_UNKNOWN_STAGE 5
/* `hook`: the container asked for a slice that it cannot be held to, and must not start. `check`: one would not. */
#define GPUCAP_EXIT_REFUSED 6
/* `run`: the command line cannot be understood, a limit cannot be used, or the limit cannot be set up. Nothing was run.
 * `cdi`: a limit that cannot be used. */
#define GPUCAP_EXIT_NOT_RUN 125
/* `run`: the program cannot be executed. */
#define GPUCAP_EXIT_NOT_EXECUTABLE 126
/* `run`: the program was not found. */
#define GPUCAP_EXIT_NOT_FOUND 127

/* ---- the ledger: layout, version 1 ----
 *
 * One file per container, of GPUCAP_LEDGER_SIZE bytes, sparse, shared by all its processes: little-endian 64-bit
 * words, each read and written atomically. For readers only: changing it takes the protocol in
 * shim/core/src/ledger/account.rs. Refuse a file whose magic, version, size or counts are others. Do not read a book
 * whose bit in `touched` is not set: reading makes its page real.
 *
 * What is reserved is zero. [p]: part of the protocol. [i]: for people, each word written by its process alone
 * (of a device: added to or raised by all).
 */
#define GPUCAP_LEDGER_MAGIC 0x474c706163757067u /* "gpucapLG" */
#define GPUCAP_LEDGER_VERSION 1
#define GPUCAP_LEDGER_SIZE 16863232
#define GPUCAP_LEDGER_SLOTS 1024
#define GPUCAP_LEDGER_DEVICES 64
#define GPUCAP_LEDGER_KINDS 14
#define GPUCAP_LEDGER_WINDOWS 8

struct gpucap_ledger_header {
    uint64_t magic; /* written last when a zeroed file is formatted */
    uint64_t version;
    uint64_t size; /* of the file */
    uint64_t slots;
    uint64_t devices;
    uint64_t high_water; /* [p] one more than the highest slot ever claimed */
    uint64_t changes;    /* [p] raised after a claim, and before and after a slot is freed */
    uint64_t boot;       /* which boot the times are of: a hash of its id, 0 if unknown */
    uint64_t attendance; /* [p] System V shared memory that the living have attached: low 32 bits of its shm_ctime, id */
    uint64_t looked;     /* when each process was last looked at, CLOCK_MONOTONIC ns */
    uint64_t clocks;     /* which time namespace's clocks the times are of: its inode, 0 if unknown */
    uint64_t reserved[501];
};

struct gpucap_ledger_device {
    uint64_t total; /* [p] GPUCAP_LEDGER_TOTAL_* */
    uint64_t peak;  /* [i] the most bytes ever in use */
    uint64_t refusals;
    uint64_t reserved[2];
    uint64_t covered_besides[3]; /* as `covered`, for three more stretches */
    uint64_t bucket;   /* of the compute limit: when the bucket is level, CLOCK_MONOTONIC ns */
    uint64_t busy;     /* [i] ns in which the container kept the device busy */
    uint64_t waited;   /* [i] ns that launches waited */
    uint64_t launches; /* [i] those of a batch are counted when it ends */
    uint64_t collectives; /* of the compute limit: when those out were counted last, in 1024 ns, << 16, and how many */
    uint64_t shares; /* of the compute limit: when the largest share in use was written, in 2^20 ns, << 16, and it in 1/10000 */
    uint64_t covered; /* of the compute limit: the end of a stretch of time with work of a process, in 1024 ns, << 20, and its length */
    uint64_t surplus; /* of the compute limit: ns by which such time is ahead of what was charged, signed */
    uint64_t uuid[4]; /* [p] word k: bytes 4k..4k+3, big-endian, in the low half; bit 63 set once written */
    uint64_t covered_too[2]; /* as `covered`, for two more stretches */
    uint64_t borrowed;       /* [i] ns of `busy` beyond the guarantee */
    uint64_t unknown; /* of the compute limit: when a launch of unknown length began, in 1024 ns, << 17; << 16: it is waited for; its slot + 1 */
    uint64_t windows[GPUCAP_LEDGER_WINDOWS]; /* [i] GPUCAP_LEDGER_WINDOW_*: busy time lately */
};

struct gpucap_ledger_owner {
    uint64_t owner;         /* [p] GPUCAP_LEDGER_OWNER_* */
    uint64_t pid_namespace; /* [p] these three: GPUCAP_LEDGER_FACT_*; inode of the pid namespace */
    uint64_t start_time;    /* [p] clock ticks since boot, as /proc/PID/stat has it */
    uint64_t image;         /* [p] start of the stack: differs between a process and what it executes */
    uint64_t touched;       /* [p] bit d: the slot has a book of device d; never cleared */
    uint64_t since;         /* [i] when the slot was claimed, CLOCK_BOOTTIME ns */
    uint64_t uses;          /* bit d: its process uses device d, whether it has a book or not */
    uint64_t reserved;
};

struct gpucap_ledger_book {
    uint64_t op;         /* [p] GPUCAP_LEDGER_OP_* */
    uint64_t amounts[2]; /* [p] bytes held after the operations of even and of odd sequence */
    uint64_t cap;        /* [i] of the latest charge */
    uint64_t peak;       /* [i] */
    uint64_t refusals;   /* [i] */
    uint64_t busy;       /* [i] ns in which the process kept the device busy */
    uint64_t launches;   /* [i] */
    /* [i] bytes by kind: plain, managed, pool, virtual memory, array, context, module, heap, graph, reserved */
    uint64_t kinds[GPUCAP_LEDGER_KINDS];
    uint64_t alive;      /* GPUCAP_LEDGER_FACT_*: CLOCK_MONOTONIC ns >> 10 when its process was last known to live; or 0 */
    uint64_t unfinished; /* GPUCAP_LEDGER_FACT_*: CLOCK_MONOTONIC ns >> 10 up to which work that is out is paid for; or 0 */
    uint64_t windows[GPUCAP_LEDGER_WINDOWS]; /* [i] as the device's */
};

struct gpucap_ledger {
    struct gpucap_ledger_header header;                                             /* at 0 */
    struct gpucap_ledger_device devices[GPUCAP_LEDGER_DEVICES];                     /* at 4096 */
    struct gpucap_ledger_owner owners[GPUCAP_LEDGER_SLOTS];                         /* at 20480 */
    struct gpucap_ledger_book books[GPUCAP_LEDGER_DEVICES][GPUCAP_LEDGER_SLOTS];    /* at 86016 */
};

/* total: bytes in use, and the operation that made them so: its slot, and the low 12 bits of its sequence. */
#define GPUCAP_LEDGER_TOTAL_BYTES(word) ((word) >> 22)
#define GPUCAP_LEDGER_TOTAL_SLOT(word) ((word) >> 12 & 0x3ff)
#define GPUCAP_LEDGER_TOTAL_SEQUENCE(word) ((word) & 0xfff)

/*
 * op: the latest operation of a book. A closed one took effect; an open one did if and only if the total names it.
 * The book holds amounts[sequence & 1] after the operation, or 0 if it is an emptying one, and
 * amounts[(sequence - 1) & 1] before it.
 */
#define GPUCAP_LEDGER_OP_SEQUENCE(word) ((word) >> 2)
#define GPUCAP_LEDGER_OP_IS_EMPTYING(word) ((word) >> 1 & 1)
#define GPUCAP_LEDGER_OP_IS_OPEN(word) ((word) & 1)

/* owner: 0 free, 1 being claimed (holds nothing), 2 live. Each claim raises the generation. */
#define GPUCAP_LEDGER_OWNER_GENERATION(word) ((word) >> 24)
#define GPUCAP_LEDGER_OWNER_PID(word) ((word) >> 2 & 0x3fffff)
#define GPUCAP_LEDGER_OWNER_STATE(word) ((word) & 3)

/* A fact about an owner; it belongs to the claim if the low 16 bits are those of the generation. */
#define GPUCAP_LEDGER_FACT_VALUE(word) ((word) >> 16)
#define GPUCAP_LEDGER_FACT_GENERATION(word) ((word) & 0xffff)

/*
 * windows: window w, which is the 2^27 ns from w << 27 of CLOCK_MONOTONIC on, has its place at w % 8; a place tells of w
 * if its number is the low half of w. Time settles late: leave the present window and the one before it out.
 */
#define GPUCAP_LEDGER_WINDOW_BITS 27
#define GPUCAP_LEDGER_WINDOW_NUMBER(word) ((word) >> 32)
#define GPUCAP_LEDGER_WINDOW_BUSY(word) ((word) & 0xffffffff)

/* ---- the usage page: layout, version 1 ----
 *
 * One file per container, of GPUCAP_PAGE_SIZE bytes, which tells others on the same cards of its work there. Words are as
 * in the ledger. The writer of a page is not trusted: read it, do not map it, since it may be truncated at any time, open it
 * without blocking, and believe nothing. What is reserved is zero.
 */
#define GPUCAP_PAGE_MAGIC 0x5043706163757067u /* "gpucapCP" */
#define GPUCAP_PAGE_VERSION 1
#define GPUCAP_PAGE_SIZE 69632
#define GPUCAP_PAGE_PLACES 64

struct gpucap_page_gpu {
    uint64_t uuid[2]; /* bytes 8k..8k+7 each, big-endian */
};

struct gpucap_page_seat {
    uint64_t work;     /* ns of the GPU: what a process has had done there, and what is reserved for what is out */
    uint64_t occupied; /* GPUCAP_PAGE_OCCUPIED_*: for how long it has had anything out */
};

/* debts: until when the container may launch nothing there, as of a moment ago; 0 or past: it may. */
struct gpucap_page {
    uint64_t magic;
    uint64_t version;
    uint64_t high_water; /* one more than the highest slot of a seat that was ever taken */
    uint64_t reserved[5];
    struct gpucap_page_gpu gpus[GPUCAP_PAGE_PLACES];                       /* at 64: by device of the ledger */
    uint64_t debts[GPUCAP_PAGE_PLACES];                                    /* at 1088: ns since 1970, by device */
    uint64_t reserved_room[312];
    struct gpucap_page_seat seats[GPUCAP_PAGE_PLACES][GPUCAP_PAGE_PLACES]; /* at 4096: by device, then by slot */
};

/* occupied: ns, or if something is out the CLOCK_MONOTONIC ns at which that would have begun without interruption. */
#define GPUCAP_PAGE_OCCUPIED_IS_OUT(word) ((word) >> 63)
/* While something is out: it may take far longer than was reserved for it. */
#define GPUCAP_PAGE_OCCUPIED_MAY_BE_LONG(word) ((word) >> 62 == 3)
#define GPUCAP_PAGE_OCCUPIED_NS(word) ((word) & 0x3fffffffffffffffu)

#endif
