/* Kills its process at the n-th call that changes a file in a folder. Used with LD_PRELOAD.
 *
 * DEADLY_FOLDER  the folder
 * DEADLY_AT      n, from 1 on; 0 or nothing: no call is deadly
 * DEADLY_WHEN    before, half or after: when in that call. `half` counts writes only, and
 *                writes half of the bytes.
 *
 * The variables are read at every call, so a forked child may set its own. Files in the folder
 * are not synced: what a killed process wrote is in the system's memory, and waiting for the disk
 * would only take time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long calls = 0;

static int inside(const char *place) {
    const char *folder = getenv("DEADLY_FOLDER");
    return folder && *folder && strncmp(place, folder, strlen(folder)) == 0;
}

static int inside_file(int file) {
    char link[64], place[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, place, sizeof place - 1);
    if (length < 0) return 0;
    place[length] = 0;
    return inside(place);
}

static int now(const char *when) {
    const char *chosen = getenv("DEADLY_WHEN");
    return chosen && strcmp(chosen, when) == 0;
}

/* Whether this call is the deadly one. */
static int counted(int relevant, int writes) {
    const char *at = getenv("DEADLY_AT");
    if (!at || !relevant || (now("half") && !writes)) return 0;
    return __sync_add_and_fetch(&calls, 1) == atol(at);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define REAL(type, name, ...)                                   \
    static type (*real)(__VA_ARGS__) = NULL;                    \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define DEADLY(deadly, call)                                    \
    do {                                                        \
        if ((deadly) && now("before")) die();                   \
        __typeof__(call) found = (call);                        \
        if (deadly) die();                                      \
        return found;                                           \
    } while (0)

ssize_t write(int file, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    int deadly = counted(inside_file(file), 1);
    if (deadly && now("half")) size /= 2;
    DEADLY(deadly, real(file, data, size));
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    int deadly = counted(inside_file(file), 1);
    if (deadly && now("half")) size /= 2;
    DEADLY(deadly, real(file, data, size, at));
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    int deadly = counted(inside_file(file), 1);
    if (deadly && now("half")) size /= 2;
    DEADLY(deadly, real(file, data, size, at));
}

#define SYNCING(name)                                           \
    int name(int file) {                                        \
        REAL(int, #name, int);                                  \
        int ours = inside_file(file);                           \
        int deadly = counted(ours, 0);                          \
        DEADLY(deadly, ours ? 0 : real(file));                  \
    }

SYNCING(fsync)
SYNCING(fdatasync)

#define CUTTING(name, offset)                                   \
    int name(int file, offset size) {                           \
        REAL(int, #name, int, offset);                          \
        int deadly = counted(inside_file(file), 0);             \
        DEADLY(deadly, real(file, size));                       \
    }

CUTTING(ftruncate, off_t)
CUTTING(ftruncate64, off64_t)

int unlink(const char *place) {
    REAL(int, "unlink", const char *);
    int deadly = counted(inside(place), 0);
    DEADLY(deadly, real(place));
}

int rename(const char *place, const char *target) {
    REAL(int, "rename", const char *, const char *);
    int deadly = counted(inside(target), 0);
    DEADLY(deadly, real(place, target));
}

#define CREATING(name)                                          \
    int name(const char *place, int flags, ...) {               \
        REAL(int, #name, const char *, int, ...);               \
        va_list more;                                           \
        va_start(more, flags);                                  \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
        va_end(more);                                           \
        int deadly = counted(flags & O_CREAT && inside(place), 0); \
        DEADLY(deadly, real(place, flags, mode));               \
    }

CREATING(open)
CREATING(open64)
