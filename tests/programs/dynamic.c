/* Tests of dynamic processes (chapter 11 of MPI 5.0): spawn, ports, published names, join, and messages between jobs.
 * A spawned job runs the same program; its first argument is the name of the parent's test. */
#include "check.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG (1 << 17) /* ints of a message that is announced first */

static int *numbers(int seed)
{
    int *all = malloc(LONG * sizeof *all);
    for (int i = 0; i < LONG; i++)
        all[i] = seed * 31 + i;
    return all;
}

static void exchange(MPI_Comm inter, int me)
{
    int theirs, *out = numbers(me), *in = malloc(LONG * sizeof *in);
    OK(MPI_Comm_remote_size(inter, &theirs));
    MPI_Request requests[128];
    int n = 0;
    for (int i = 0; i < theirs; i++)
        OK(MPI_Isend(out, i % 2 ? 3 : LONG, MPI_INT, i, 7, inter, &requests[n++]));
    for (int i = 0; i < theirs; i++) {
        MPI_Status status;
        int count;
        OK(MPI_Probe(MPI_ANY_SOURCE, 7, inter, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        OK(MPI_Recv(in, LONG, MPI_INT, status.MPI_SOURCE, 7, inter, MPI_STATUS_IGNORE));
        CHECK(count == (me % 2 ? 3 : LONG), "%d came", count);
        for (int k = 0; k < count; k++)
            CHECK(in[k] == status.MPI_SOURCE * 31 + k, "number %d from %d is %d", k, status.MPI_SOURCE, in[k]);
    }
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    free(out);
    free(in);
}

/* Checks communicators created from an intercommunicator between jobs;
 * both sides create them in the same order. */
static void communicators(MPI_Comm inter, int parent_side, int one_job)
{
    int mine, theirs, flag, me;
    OK(MPI_Comm_test_inter(inter, &flag));
    CHECK(flag, "%d", flag);
    OK(MPI_Comm_size(inter, &mine));
    OK(MPI_Comm_remote_size(inter, &theirs));
    OK(MPI_Comm_rank(inter, &me));
    exchange(inter, me);

    int word = parent_side ? 4711 : -1;
    int root = !parent_side ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL;
    OK(MPI_Bcast(&word, 1, MPI_INT, root, inter));
    CHECK(word == 4711, "%d", word);
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == theirs, "%d of %d", sum, theirs);

    MPI_Comm twin, all, half, again;
    OK(MPI_Comm_dup(inter, &twin));
    exchange(twin, me);
    OK(MPI_Comm_free(&twin));

    for (int high = 0; high < 2; high++) {
        int at, total, expected = parent_side == high ? theirs + me : me;
        OK(MPI_Intercomm_merge(inter, parent_side == high, &all));
        OK(MPI_Comm_rank(all, &at));
        OK(MPI_Comm_size(all, &total));
        CHECK(total == mine + theirs && at == expected, "rank %d of %d", at, total);
        OK(MPI_Allreduce(&at, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK(sum == total * (total - 1) / 2, "%d", sum);

        /* Creates halves with members of both jobs, and an intercommunicator between the halves. */
        OK(MPI_Comm_split(all, at % 2, -at, &half));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half));
        CHECK(sum == (total + 1 - at % 2) / 2, "%d", sum);
        if (total > 1) {
            int left = 0; /* a half reverses the rank order, so its leader has the highest rank */
            int first = (total - 1) / 2 * 2, second = total / 2 * 2 - 1;
            OK(MPI_Intercomm_create(half, left, all, at % 2 ? first : second, 3, &again));
            int h;
            OK(MPI_Comm_rank(half, &h));
            exchange(again, h);
            OK(MPI_Comm_free(&again));
        }
        OK(MPI_Comm_free(&half));

        /* Processes of different jobs share no memory;
           processes of one job do, as all are on one node. */
        OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half));
        OK(MPI_Comm_size(half, &sum));
        CHECK(sum == (one_job ? total : mine), "%d", sum);
        OK(MPI_Comm_free(&half));

        /* Creates windows and files whose members are processes of both jobs. */
        int *memory;
        MPI_Win win;
        OK(MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, all, &memory, &win));
        *memory = 0;
        OK(MPI_Barrier(all));
        OK(MPI_Win_lock_all(0, win));
        for (int i = 0; i < total; i++)
            OK(MPI_Accumulate(&one, 1, MPI_INT, i, 0, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Barrier(all));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, at, 0, win));
        CHECK(*memory == total, "%d of %d", *memory, total);
        OK(MPI_Win_unlock(at, win));
        OK(MPI_Win_free(&win));
        OK(MPI_Comm_free(&all));
    }
}

static MPI_Comm spawn(const char *program, const char *what, int procs, MPI_Info info)
{
    MPI_Comm inter;
    int codes[64];
    char *arguments[] = {(char *)what, "two words", "", NULL};
    memset(codes, 7, sizeof codes);
    /* Only the root's arguments are significant. */
    int root = size - 1;
    OK(MPI_Comm_spawn(rank == root ? program : NULL, rank == root ? arguments : NULL, rank == root ? procs : -5,
                      rank == root ? info : MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter, codes));
    for (int i = 0; i < procs; i++)
        CHECK(codes[i] == MPI_SUCCESS, "code %d is %d", i, codes[i]);
    int there;
    OK(MPI_Comm_remote_size(inter, &there));
    CHECK(there == procs, "%d of %d", there, procs);
    return inter;
}

static void as_parent(const char *program)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "env", "DYNAMIC_ONE=first\nDYNAMIC_TWO=second part"));
    OK(MPI_Info_set(info, "wdir", "/"));
    OK(MPI_Info_set(info, "unknown_key", "ignored"));
    MPI_Comm inter = spawn(program, "child", 3, info);
    OK(MPI_Info_free(&info));
    communicators(inter, 1, 0);
    OK(MPI_Comm_disconnect(&inter));
    CHECK(inter == MPI_COMM_NULL, "still there");

    /* Spawns two programs; for one of them the number of processes is soft (info key "soft"). */
    char *commands[] = {(char *)program, (char *)program};
    char *first[] = {"multiple", "one", NULL}, *second[] = {"multiple", NULL};
    char **arguments[] = {first, second};
    int most[] = {1, 4}, codes[5] = {-1, -1, -1, -1, -1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    OK(MPI_Info_create(&infos[1]));
    OK(MPI_Info_set(infos[1], "soft", "1:3:2"));
    OK(MPI_Comm_spawn_multiple(2, commands, arguments, most, infos, 0, MPI_COMM_WORLD, &inter, codes));
    OK(MPI_Info_free(&infos[1]));
    int there;
    OK(MPI_Comm_remote_size(inter, &there));
    CHECK(there == 4, "%d", there);
    for (int i = 0; i < 5; i++) {
        int class = MPI_SUCCESS;
        if (codes[i] != MPI_SUCCESS)
            OK(MPI_Error_class(codes[i], &class));
        CHECK(class == (i == 4 ? MPI_ERR_SPAWN : MPI_SUCCESS), "code %d is %d", i, codes[i]);
    }
    communicators(inter, 1, 0);
    OK(MPI_Comm_disconnect(&inter));
    announce("dynamic");
}

static void as_child(int argc, char **argv, MPI_Comm parent)
{
    MPI_Comm same;
    OK(MPI_Comm_get_parent(&same));
    CHECK(same == parent, "another handle");
    char name[MPI_MAX_OBJECT_NAME];
    int length, flag, *appnum;
    OK(MPI_Comm_get_name(parent, name, &length));
    CHECK(strcmp(name, "MPI_COMM_PARENT") == 0, "%s", name);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag));
    CHECK(flag, "no MPI_APPNUM");
    if (strcmp(argv[1], "child") == 0) {
        char here[64];
        CHECK(argc == 4 && strcmp(argv[2], "two words") == 0 && argv[3][0] == 0, "%d arguments", argc);
        CHECK(*appnum == 0, "%d", *appnum);
        CHECK(getenv("DYNAMIC_ONE") && strcmp(getenv("DYNAMIC_ONE"), "first") == 0, "%s", getenv("DYNAMIC_ONE"));
        CHECK(getenv("DYNAMIC_TWO") && strcmp(getenv("DYNAMIC_TWO"), "second part") == 0, "%s", getenv("DYNAMIC_TWO"));
        CHECK(getcwd(here, sizeof here) && strcmp(here, "/") == 0, "%s", here);
    } else {
        CHECK(*appnum == (rank == 0 ? 0 : 1) && argc == (rank == 0 ? 3 : 2), "%d %d", *appnum, argc);
    }
    communicators(parent, 0, 0);
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Comm_get_parent(&same));
    CHECK(same == MPI_COMM_NULL, "still there");
}

static int open_descriptors(const char *whose)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/fd", whose);
    DIR *all = opendir(path);
    int n = 0;
    while (readdir(all))
        n++;
    closedir(all);
    return n;
}

/* Returns the smallest number of open descriptors within a second: a process closes its descriptor
 * of a connection only after the other end has disconnected too. */
static int fewest_descriptors(const char *whose)
{
    int fewest = open_descriptors(whose);
    for (int look = 0; look < 100; look++) {
        int flag;
        OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
        int now = open_descriptors(whose);
        fewest = now < fewest ? now : fewest;
        usleep(10 * 1000);
    }
    return fewest;
}

/* Resident memory of a process, in KiB. */
struct resident {
    long private; /* anonymous memory; the number of file pages grows with executed code */
    long shared;
};

/* Returns the resident memory of this process, or of its mpirun. */
static struct resident resident(const char *whose)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%s/status", whose);
    FILE *file = fopen(path, "r");
    CHECK(file, "%s", path);
    struct resident now = {0, 0};
    int found = 0;
    while (fgets(line, sizeof line, file)) {
        long kilobytes;
        if (sscanf(line, "RssAnon: %ld", &kilobytes) == 1)
            now.private = kilobytes, found++;
        if (sscanf(line, "RssShmem: %ld", &kilobytes) == 1)
            now.shared = kilobytes, found++;
    }
    fclose(file);
    CHECK(found == 2, "%d of 2 lines in %s", found, path);
    return now;
}

/* The freed shared memory, in KiB, that a process may keep for its next communicator;
 * at the end of `rounds` a process keeps about 2.4 MB. */
enum { KEPT = 8 * 1024 };

static void has_not_grown(const char *name, struct resident before, struct resident now, long most)
{
    CHECK(now.private <= before.private + most, "%s has %ld kB of its own, after ten rounds %ld", name, now.private, before.private);
    CHECK(now.shared <= before.shared + KEPT, "%s has %ld kB of shared memory, after ten rounds %ld", name, now.shared, before.shared);
}

/* Checks that jobs that have ended leave no memory and no descriptors in use. */
static void rounds(const char *program, int how_many)
{
    enum { MOST = 1024 }; /* kilobytes for a hundred rounds */
    char parent[32];
    snprintf(parent, sizeof parent, "%d", getppid());
    struct resident own = {0, 0}, launcher = {0, 0};
    int after_ten = 0, launchers = 0;
    for (int round = 0; round < how_many; round++) {
        MPI_Comm inter = spawn(program, "guest", 2, MPI_INFO_NULL);
        int word = -1;
        OK(MPI_Recv(&word, 1, MPI_INT, rank % 2, 1, inter, MPI_STATUS_IGNORE));
        CHECK(word == rank, "%d", word);
        OK(MPI_Comm_disconnect(&inter));
        if (round == 9)
            own = resident("self"), launcher = resident(parent), after_ten = fewest_descriptors("self"), launchers = fewest_descriptors(parent);
    }
    if (how_many > 10) {
        long most = MOST + MOST * (long)how_many / 100;
        has_not_grown("the rank", own, resident("self"), most);
        has_not_grown("mpirun", launcher, resident(parent), most);
        int at_end = fewest_descriptors("self");
        CHECK(at_end <= after_ten, "%d descriptors, after ten rounds %d", at_end, after_ten);
        at_end = fewest_descriptors(parent);
        CHECK(at_end <= launchers, "mpirun has %d descriptors, after ten rounds %d", at_end, launchers);
    }
    announce("dynamic");
}

static void as_guest(MPI_Comm parent)
{
    int hosts;
    OK(MPI_Comm_remote_size(parent, &hosts));
    for (int i = rank; i < hosts; i += 2)
        OK(MPI_Send(&i, 1, MPI_INT, i, 1, parent));
    OK(MPI_Comm_disconnect(&parent));
}

/* Spawns a child that dies while this parent waits for it ("mortal"), or a child that outlives this parent;
 * the child creates the file `sign` at its end. */
static void bear(const char *program, char *what, char *sign)
{
    char *arguments[] = {what, sign, NULL};
    MPI_Comm inter;
    OK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    int word = getpid();
    OK(MPI_Send(&word, 1, MPI_INT, 0, 1, inter));
    if (strcmp(what, "mortal") == 0)
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    OK(MPI_Comm_disconnect(&inter));
    announce("dynamic");
}

static void be_born(const char *what, const char *sign, MPI_Comm parent)
{
    int pid;
    OK(MPI_Recv(&pid, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE));
    if (strcmp(what, "mortal") == 0)
        kill(getpid(), SIGKILL);
    OK(MPI_Comm_disconnect(&parent));
    while (kill(pid, 0) == 0)
        usleep(10000);
    fclose(fopen(sign, "w"));
}

/* The lower half of the ranks accepts, the upper half connects: ports also work within a job. */
static void ports(void)
{
    char port[MPI_MAX_PORT_NAME] = "", other[MPI_MAX_PORT_NAME];
    int lower = rank < size / 2, root = lower ? 0 : size / 2;
    MPI_Comm half, inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, lower, rank, &half));
    for (int round = 0; round < 3; round++) {
        if (rank == 0) {
            OK(MPI_Open_port(MPI_INFO_NULL, port));
            CHECK(strlen(port) < 256, "%zu characters", strlen(port));
            OK(MPI_Publish_name("a service; with=signs", MPI_INFO_NULL, port));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == root && !lower)
            OK(MPI_Lookup_name("a service; with=signs", MPI_INFO_NULL, port));
        if (lower)
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        else
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
        communicators(inter, lower, 1);
        OK(MPI_Comm_disconnect(&inter));
        if (rank == 0) {
            OK(MPI_Unpublish_name("a service; with=signs", MPI_INFO_NULL, port));
            OK(MPI_Close_port(port));
        }
    }
    OK(MPI_Comm_free(&half));

    if (rank < 2) { /* a socket that connects two processes */
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (rank == 0) {
            int door = fd;
            CHECK(bind(door, (void *)&address, sizeof address) == 0 && listen(door, 1) == 0, "no socket");
            getsockname(door, (void *)&address, &length);
            OK(MPI_Send(&address.sin_port, sizeof address.sin_port, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
            fd = accept(door, NULL, NULL);
            close(door);
        } else {
            OK(MPI_Recv(&address.sin_port, sizeof address.sin_port, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(connect(fd, (void *)&address, sizeof address) == 0, "no connection");
        }
        OK(MPI_Comm_join(fd, &inter));
        close(fd);
        exchange(inter, 0);
        OK(MPI_Comm_disconnect(&inter));
    }

    /* A failure is reported on all members, with its cause. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#define FAILS(expected, call) \
    do { int code = (call), class; OK(MPI_Error_class(code, &class)); CHECK(class == (expected), #call " gives %d", code); } while (0)
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    FAILS(MPI_ERR_PORT, MPI_Comm_connect("no port", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    strcpy(other, port);
    other[strlen(other) - 4] = 0;
    FAILS(MPI_ERR_PORT, MPI_Comm_connect(other, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    FAILS(MPI_ERR_ROOT, MPI_Comm_connect(port, MPI_INFO_NULL, size, MPI_COMM_WORLD, &inter));
    FAILS(MPI_ERR_ROOT, MPI_Comm_accept(port, MPI_INFO_NULL, MPI_ROOT, MPI_COMM_WORLD, &inter));
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "timeout", "0.2"));
    FAILS(MPI_ERR_PORT, MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter));
    OK(MPI_Info_free(&info));
    OK(MPI_Close_port(port));
    FAILS(MPI_ERR_PORT, MPI_Close_port(port));
    FAILS(MPI_ERR_PORT, MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    FAILS(MPI_ERR_PORT, MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    FAILS(MPI_ERR_NAME, MPI_Lookup_name("unpublished", MPI_INFO_NULL, port));
    FAILS(MPI_ERR_SERVICE, MPI_Unpublish_name("unpublished", MPI_INFO_NULL, "p"));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Publish_name("twice", MPI_INFO_NULL, "one"));
        FAILS(MPI_ERR_SERVICE, MPI_Publish_name("twice", MPI_INFO_NULL, "two"));
        FAILS(MPI_ERR_SERVICE, MPI_Unpublish_name("twice", MPI_INFO_NULL, "two"));
        OK(MPI_Unpublish_name("twice", MPI_INFO_NULL, "one"));
    }
    int codes[2] = {0, 0};
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes));
    for (int i = 0; i < 2; i++)
        FAILS(MPI_ERR_SPAWN, codes[i]);
    announce("dynamic");
}

/* Connects two independent jobs that have only a file name in common. */
static void meet(const char *file, int accepts)
{
    char port[MPI_MAX_PORT_NAME] = "", draft[1024];
    MPI_Comm inter;
    if (rank == 0 && accepts) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        snprintf(draft, sizeof draft, "%s.draft", file);
        FILE *out = fopen(draft, "w");
        fputs(port, out);
        fclose(out);
        rename(draft, file);
    } else if (rank == 0) {
        FILE *in;
        while (!(in = fopen(file, "r")))
            usleep(10000);
        CHECK(fgets(port, sizeof port, in), "no port");
        fclose(in);
    }
    if (accepts)
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    else
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    communicators(inter, accepts, 0);
    OK(MPI_Comm_disconnect(&inter));
    announce("dynamic");
}

/* This process publishes a port name, and accepts two jobs that look up the name. */
static void serve(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(name, MPI_INFO_NULL, port));
    }
    for (int visit = 0; visit < 2; visit++) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        communicators(inter, 1, 0);
        OK(MPI_Comm_disconnect(&inter));
    }
    if (rank == 0) {
        OK(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
    }
    announce("dynamic");
}

static void visit(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    MPI_Errhandler before;
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &before));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    while (rank == 0 && MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS)
        usleep(10000);
    if (rank == 0) /* only the process that has published a name may unpublish it */
        FAILS(MPI_ERR_SERVICE, MPI_Unpublish_name(name, MPI_INFO_NULL, port));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, before));
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    communicators(inter, 0, 0);
    OK(MPI_Comm_disconnect(&inter));
    announce("dynamic");
}

/* Checks the value of the attribute MPI_UNIVERSE_SIZE. */
static void universe(int wanted)
{
    int *room, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &room, &flag));
    CHECK(flag && *room == wanted, "room for %d", flag ? *room : 0);
    announce("dynamic");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm parent;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(argc > 1, "which part?");
    if (strcmp(argv[1], "guest") == 0)
        as_guest(parent);
    else if (parent != MPI_COMM_NULL && (strcmp(argv[1], "mortal") == 0 || strcmp(argv[1], "survivor") == 0))
        be_born(argv[1], argv[2], parent);
    else if (parent != MPI_COMM_NULL)
        as_child(argc, argv, parent);
    else if (strcmp(argv[1], "spawn") == 0)
        as_parent(argv[0]);
    else if (strcmp(argv[1], "rounds") == 0)
        rounds(argv[0], atoi(argv[2]));
    else if (strcmp(argv[1], "mortal") == 0 || strcmp(argv[1], "survivor") == 0)
        bear(argv[0], argv[1], argv[2]);
    else if (strcmp(argv[1], "universe") == 0)
        universe(atoi(argv[2]));
    else if (strcmp(argv[1], "mute") == 0)
        MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &parent, MPI_ERRCODES_IGNORE);
    else if (strcmp(argv[1], "ports") == 0)
        ports();
    else if (strcmp(argv[1], "serve") == 0)
        serve(argv[2]);
    else if (strcmp(argv[1], "visit") == 0)
        visit(argv[2]);
    else
        meet(argv[2], strcmp(argv[1], "accept") == 0);
    OK(MPI_Finalize());
    return 0;
}
