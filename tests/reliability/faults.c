// Preloaded, makes the n-th system call on files of one folder fail, or ends the process there as kill -9 or a power cut
// would. A power cut loses what was written to a file and not synced.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(type, name, ...)                                    \
    static type (*real)(__VA_ARGS__);                            \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

enum { FAIL = 0, KILL = 1, CUT = 2 };
enum { FILES = 64 };

static struct {
    char folder[4096], call[16];
    long number, seen;
    int action, error, begun, fired;
} plan;

static struct {
    int used, copy, dirty;  // a descriptor that stays open when the file is closed
    ino_t inode;
    off_t synced;
} files[FILES];

// Begin to count calls of a name ("any" for all) on the folder; malloc is counted from the first new file on.
void fault_plan(const char* folder, const char* call, long number, int action, int error) {
    memset(&plan, 0, sizeof plan);
    snprintf(plan.folder, sizeof plan.folder, "%s", folder);
    plan.number = number, plan.action = action, plan.error = error;
    snprintf(plan.call, sizeof plan.call, "%s", call);
}

// No more faults; whether there was one.
int fault_end(void) {
    plan.number = 0;
    return plan.fired;
}

static int ours(const char* path) {
    return plan.number && path && !strncmp(path, plan.folder, strlen(plan.folder));
}

static int our_descriptor(int descriptor) {
    char link[64], path[4096];
    if (!plan.number) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return ours(path);
}

static void drop_unsynced(void) {
    for (int i = 0; i < FILES; ++i)
        if (files[i].used && files[i].dirty && ftruncate(files[i].copy, files[i].synced)) _exit(99);
}

// Whether this call fails.
static int fails(const char* call) {
    if (!plan.number || plan.fired || (strcmp(plan.call, "any") && strcmp(plan.call, call))) return 0;
    if (!strcmp(plan.call, "any") && !strcmp(call, "malloc")) return 0;
    if (++plan.seen != plan.number) return 0;
    plan.fired = 1;
    if (plan.action == CUT) drop_unsynced();
    if (plan.action != FAIL) kill(getpid(), SIGKILL);
    errno = plan.error;
    return 1;
}

static int place_of(int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) || !S_ISREG(status.st_mode)) return -1;
    for (int i = 0; i < FILES; ++i)
        if (files[i].used && files[i].inode == status.st_ino) return i;
    return -1;
}

static void track(int descriptor) {
    struct stat status;
    if (plan.action != CUT || place_of(descriptor) >= 0 || fstat(descriptor, &status) || !S_ISREG(status.st_mode)) return;
    for (int i = 0; i < FILES; ++i)
        if (!files[i].used) {
            files[i].used = 1, files[i].dirty = 0;
            files[i].copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 100);
            files[i].inode = status.st_ino, files[i].synced = status.st_size;
            return;
        }
}

static int opened(const char* path, int flags, int mode, int (*real)(const char*, int, ...)) {
    if (!ours(path)) return real(path, flags, mode);
    if (fails("open")) return -1;
    const int descriptor = real(path, flags, mode);
    if (descriptor >= 0 && flags & O_CREAT) plan.begun = 1, track(descriptor);
    return descriptor;
}

#define OPEN(name)                                                                    \
    int name(const char* path, int flags, ...) {                                      \
        static int (*real)(const char*, int, ...);                                    \
        if (!real) real = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name);    \
        va_list rest;                                                                 \
        va_start(rest, flags);                                                        \
        const int mode = flags & O_CREAT ? va_arg(rest, int) : 0;                     \
        va_end(rest);                                                                 \
        return opened(path, flags, mode, real);                                       \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int descriptor, const void* data, size_t size) {
    REAL(ssize_t, "write", int, const void*, size_t);
    if (our_descriptor(descriptor)) {
        if (fails("write")) return -1;
        const int place = place_of(descriptor);
        if (place >= 0) files[place].dirty = 1;
    }
    return real(descriptor, data, size);
}

int fsync(int descriptor) {
    REAL(int, "fsync", int);
    if (our_descriptor(descriptor)) {
        if (fails("fsync")) return -1;
        struct stat status;
        const int place = place_of(descriptor);
        if (place >= 0 && !fstat(descriptor, &status)) files[place].dirty = 0, files[place].synced = status.st_size;
        return 0;  // cuts are simulated: no need to wait for the disk
    }
    return real(descriptor);
}

int rename(const char* from, const char* to) {
    REAL(int, "rename", const char*, const char*);
    if ((ours(from) || ours(to)) && fails("rename")) return -1;
    return real(from, to);
}

int close(int descriptor) {
    REAL(int, "close", int);
    const int mine = our_descriptor(descriptor), failing = mine && fails("close"), error = errno;
    const int result = real(descriptor);  // a failed close has closed the descriptor
    if (failing) errno = error;
    return failing ? -1 : result;
}

void* malloc(size_t size) {
    REAL(void*, "malloc", size_t);
    return plan.begun && fails("malloc") ? NULL : real(size);
}

void* realloc(void* old, size_t size) {
    REAL(void*, "realloc", void*, size_t);
    return plan.begun && fails("malloc") ? NULL : real(old, size);
}
