/*
 * Ranks end by SIGBUS, as ranks do that access the shared memory of a dying rank.
 *
 *     memory_gone kill|exit|alone RANK
 *
 * RANK kills itself or exits with status 3, and has so much memory that the kernel takes time to free it.
 * The other ranks of its host detect that it is dying, and access memory that does not exist,
 * so most of them end before RANK has ended.
 * With "alone", only RANK ends by itself; all other ranks wait until they are ended.
 */
#include "check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { HELD = 256 << 20, PAGE = 4096 };

/* Accesses the mapping of an empty file; the kernel sends SIGBUS. */
static void touch_nothing(void)
{
    FILE *file = tmpfile();
    CHECK(file, "no file");
    volatile char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    CHECK(at != MAP_FAILED, "no mapping");
    signal(SIGBUS, SIG_DFL);
    *at = 1;
}

/* Returns true if the process is exiting: its flag PF_EXITING is set, in field 9 of /proc/PID/stat. */
static int is_dying(int pid)
{
    char path[64], line[1024] = "", state = 'X';
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 1;
    int is_read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *after = strrchr(line, ')');
    if (!is_read || !after || sscanf(after + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
        return 1;
    return state == 'Z' || state == 'X' || (flags & 4);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "kill";
    int dying = argc > 2 ? atoi(argv[2]) : 1, victim, is_victim, has_victim;
    MPI_Comm host;
    begin(&argc, &argv);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    victim = getpid();
    OK(MPI_Bcast(&victim, 1, MPI_INT, dying, MPI_COMM_WORLD));
    is_victim = rank == dying;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Allreduce(&is_victim, &has_victim, 1, MPI_INT, MPI_MAX, host));
    char *held = mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(held != MAP_FAILED, "no memory");
    if (is_victim) {
        madvise(held, HELD, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < HELD; i += PAGE)
            held[i] = 1;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (is_victim && !strcmp(way, "alone"))
        touch_nothing();
    if (is_victim && !strcmp(way, "exit"))
        _exit(3);
    if (is_victim)
        raise(SIGKILL);
    while (!has_victim || !strcmp(way, "alone"))
        pause();
    while (!is_dying(victim))
        ;
    touch_nothing();
    return finish("memory_gone");
}
