/* An LD_PRELOAD library that kills its process at step KILLED_AT of writing a checkpoint below the folder KILLED_BELOW,
 * before the step's system call, or after the call if KILLED_AFTER is set.
 * Steps are the system calls that write a checkpoint:
 * mkdir, open for writing, write, splice, fsync, rename.
 * If KILLED_PROGRAM is set, only processes of the program with this name are killed.
 * If KILLED_UNFORKED is set, a process that was forked by such a process has no steps. */
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

static int steps;
static pid_t loaded;

static __attribute__((constructor)) void load(void)
{
    loaded = getpid();
}

static int is_below(const char *path)
{
    const char *folder = getenv("KILLED_BELOW");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_open_below(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return is_below(path);
}

static void step(int after)
{
    const char *at = getenv("KILLED_AT");
    const char *program = getenv("KILLED_PROGRAM");
    if (!at || (getenv("KILLED_AFTER") != NULL) != after)
        return;
    if (program && strcmp(program, program_invocation_short_name) != 0)
        return;
    if (getenv("KILLED_UNFORKED") && getpid() != loaded)
        return;
    if (++steps == atoi(at))
        raise(SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define AROUND(counts, call) \
    int counted = (counts); \
    if (counted) step(0); \
    __typeof__(call) result = (call); \
    if (counted) step(1); \
    return result

int mkdir(const char *path, mode_t mode) { AROUND(is_below(path), REAL(mkdir)(path, mode)); }
int rename(const char *from, const char *to) { AROUND(is_below(from), REAL(rename)(from, to)); }
int fsync(int fd) { AROUND(is_open_below(fd), REAL(fsync)(fd)); }
ssize_t write(int fd, const void *bytes, size_t count) { AROUND(is_open_below(fd), REAL(write)(fd, bytes, count)); }
int rmdir(const char *path) { AROUND(is_below(path), REAL(rmdir)(path)); }

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    AROUND((flags & O_CREAT) && is_below(path), REAL(open64)(path, flags, mode));
}

/* CRIU opens its images relative to a folder. */
int openat64(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    int is_ours = (flags & O_CREAT) && (path[0] == '/' ? is_below(path) : is_open_below(folder));
    AROUND(is_ours, REAL(openat64)(folder, path, flags, mode));
}

ssize_t splice(int from, loff_t *at, int to, loff_t *to_at, size_t length, unsigned flags)
{
    AROUND(is_open_below(to), REAL(splice)(from, at, to, to_at, length, flags));
}
