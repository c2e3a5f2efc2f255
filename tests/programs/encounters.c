/* Jobs that connect and disconnect repeatedly, and what happens to one job if the other dies.
 * Arguments: a file that contains the port's name, and the role of this job:
 * accept, connect N: N consecutive connections; every rank sends to every rank of the other side;
 * await, perish: one job waits for a message from the other job's last rank,
 *     which dies and has never communicated with the waiting job;
 * await, lose: as above, but the other ranks of the dying rank's job survive (--with-ft) and communicate;
 * survive: a spawned job disconnects from its parent and dies; the parent continues
 *     (the file then only signals between the two);
 * futile: spawns that must fail, on all members, without disturbing the job
 *     (the file is a program that the system cannot start);
 * far HOST: spawns on another host that must fail. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static void open_at(const char *file, char *port)
{
    char unfinished[1000];
    if (rank != 0)
        return;
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    snprintf(unfinished, sizeof unfinished, "%s.unfinished", file);
    FILE *out = fopen(unfinished, "w");
    fputs(port, out);
    fclose(out);
    CHECK(rename(unfinished, file) == 0, "%s", file);
}

static void find_at(const char *file, char *port)
{
    FILE *in;
    if (rank != 0)
        return;
    while (!(in = fopen(file, "r")))
        usleep(1000);
    CHECK(fgets(port, MPI_MAX_PORT_NAME, in) != NULL, "%s", file);
    fclose(in);
}

static void meet(const char *port, int accepts, MPI_Comm *inter)
{
    if (accepts)
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter));
    else
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter));
}

/* Returns true if this rank receives from all ranks of the other job in this round.
 * In turn, all ranks receive, only the last rank does, or none does. */
static int listens(int round, int who, int of)
{
    return round % 3 == 0 || (round % 3 == 1 && who == of - 1);
}

static void speak(MPI_Comm inter, int round)
{
    enum { MOST = 16 };
    int others, words[MOST], out = 1000 * round + rank, n = 0;
    MPI_Request requests[2 * MOST];
    OK(MPI_Comm_remote_size(inter, &others));
    CHECK(others <= MOST, "%d", others);
    for (int other = 0; other < others; other++) {
        if (listens(round, rank, size))
            OK(MPI_Irecv(&words[other], 1, MPI_INT, other, round, inter, &requests[n++]));
        if (listens(round, other, others))
            OK(MPI_Isend(&out, 1, MPI_INT, other, round, inter, &requests[n++]));
    }
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    for (int other = 0; other < others && listens(round, rank, size); other++)
        CHECK(words[other] == 1000 * round + other, "%d from %d in round %d", words[other], other, round);
}

static void meet_often(const char *file, int accepts, int rounds)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    accepts ? open_at(file, port) : find_at(file, port);
    for (int round = 0; round < rounds; round++) {
        meet(port, accepts, &inter);
        speak(inter, round);
        OK(MPI_Comm_disconnect(&inter));
    }
    announce("encounters");
}

/* Waits for a message from the other job's last rank, which never sends. */
static void await(const char *file, int others_live)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int others, word = 0;
    open_at(file, port);
    meet(port, 1, &inter);
    OK(MPI_Comm_remote_size(inter, &others));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    int code = MPI_Recv(&word, 1, MPI_INT, others - 1, 1, inter, MPI_STATUS_IGNORE);
    CHECK(code != MPI_SUCCESS, "%d came", word);
    if (others_live && rank < others - 1)
        OK(MPI_Send(&word, 1, MPI_INT, rank, 2, inter));
    announce("encounters");
}

static void perish(const char *file, int others_live)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int others, word;
    find_at(file, port);
    meet(port, 0, &inter);
    OK(MPI_Comm_remote_size(inter, &others));
    /* The last rank may die while others are in this barrier, so its result is not checked. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1)
        raise(SIGKILL);
    while (!others_live)
        pause();
    if (rank < others)
        OK(MPI_Recv(&word, 1, MPI_INT, rank, 2, inter, MPI_STATUS_IGNORE));
    if (rank == 0)
        printf("all claims of encounters hold on the ranks that are left\n");
}

static void come(const char *program)
{
    char *arguments[] = {"guest", "no file", NULL};
    MPI_Comm guest;
    OK(MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &guest, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&guest));
}

static void survive(const char *program, const char *sign)
{
    char *arguments[] = {"child", (char *)sign, NULL};
    MPI_Comm child;
    int pid;
    OK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE));
    if (rank == 0)
        OK(MPI_Recv(&pid, 1, MPI_INT, 0, 1, child, MPI_STATUS_IGNORE));
    OK(MPI_Comm_disconnect(&child));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        fclose(fopen(sign, "w"));
        while (kill(pid, 0) == 0)
            usleep(1000);
    }
    /* The launcher handles the end of the child before the next request. */
    come(program);
    announce("encounters");
}

static void die_alone(const char *sign, MPI_Comm parent)
{
    int pid = getpid();
    OK(MPI_Send(&pid, 1, MPI_INT, 0, 1, parent));
    OK(MPI_Comm_disconnect(&parent));
    while (access(sign, F_OK) != 0)
        usleep(1000);
    raise(SIGKILL);
}

/* Makes a spawn that must fail on all members with the message `says`. */
static void in_vain(const char *program, int many, MPI_Info info, const char *says)
{
    enum { MOST = 64 };
    MPI_Comm none;
    int codes[MOST], class, length;
    char text[MPI_MAX_ERROR_STRING];
    int code = MPI_Comm_spawn(program, MPI_ARGV_NULL, many, info, 0, MPI_COMM_WORLD, &none, codes);
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    CHECK(class == MPI_ERR_SPAWN, "%d: %s", class, text);
    CHECK(strstr(text, says) != NULL, "%s", text);
    for (int i = 0; i < many; i++)
        CHECK(codes[i] == MPI_ERR_SPAWN, "process %d has the code %d", i, codes[i]);
}

/* Limits the launcher's descriptors, so that it can start only some processes of a job. */
static void limit_launcher(struct rlimit *before)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/fd", getppid());
    DIR *all = opendir(path);
    CHECK(all != NULL, "%s", path);
    int used = 0;
    while (readdir(all))
        used++;
    closedir(all);
    OK(prlimit(getppid(), RLIMIT_NOFILE, NULL, before));
    struct rlimit few = {.rlim_cur = (rlim_t)used + 30, .rlim_max = before->rlim_max};
    OK(prlimit(getppid(), RLIMIT_NOFILE, &few, NULL));
}

static void futile(const char *program, char *broken)
{
    struct rlimit before;
    MPI_Info info;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    in_vain("/bin/true", 2, MPI_INFO_NULL, "without calling MPI_Init");
    in_vain("/bin/false", 3, MPI_INFO_NULL, "exited with status 1");
    in_vain("/no such program", 1, MPI_INFO_NULL, "/no such program");
    in_vain(broken, 2, MPI_INFO_NULL, "could not be started");
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "host", "no.such.host"));
    in_vain(program, 1, info, "the job has no host no.such.host");
    OK(MPI_Info_free(&info));
    if (rank == 0)
        limit_launcher(&before);
    in_vain(program, 50, MPI_INFO_NULL, "Too many open files");
    if (rank == 0)
        OK(prlimit(getppid(), RLIMIT_NOFILE, &before, NULL));
    come(program);
    announce("encounters");
}

static void futile_elsewhere(char *broken, const char *host)
{
    MPI_Info there;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Info_create(&there));
    OK(MPI_Info_set(there, "host", host));
    in_vain("/bin/true", 2, there, "without calling MPI_Init");
    in_vain("/no such program", 2, there, "there is no program");
    in_vain(broken, 2, there, "could not be started");
    OK(MPI_Info_free(&there));
    announce("encounters");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc > 2, "which part, and which file?");
    const char *part = argv[1], *more = argc > 3 ? argv[3] : "";
    MPI_Comm parent;
    OK(MPI_Comm_get_parent(&parent));
    if (strcmp(part, "accept") == 0 || strcmp(part, "connect") == 0)
        meet_often(argv[2], strcmp(part, "accept") == 0, atoi(more));
    else if (strcmp(part, "await") == 0)
        await(argv[2], strcmp(more, "lose") == 0);
    else if (strcmp(part, "perish") == 0 || strcmp(part, "lose") == 0)
        perish(argv[2], strcmp(part, "lose") == 0);
    else if (strcmp(part, "survive") == 0)
        survive(argv[0], argv[2]);
    else if (strcmp(part, "child") == 0)
        die_alone(argv[2], parent);
    else if (strcmp(part, "far") == 0)
        futile_elsewhere(argv[2], more);
    else if (strcmp(part, "guest") == 0)
        OK(MPI_Comm_disconnect(&parent));
    else
        futile(argv[0], argv[2]);
    OK(MPI_Finalize());
    return 0;
}
