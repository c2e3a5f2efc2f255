/* A process has a listening TCP socket while MPI is in use, and none after MPI_Finalize. */
#include "check.h"
#include <unistd.h>

/* Returns true if the kernel's table of TCP sockets (IPv4 or IPv6) lists this inode as listening. */
static int listens(const char *table, const char *inode)
{
    char line[512], state[8], owner[32];
    int found = 0;
    FILE *sockets = fopen(table, "r");
    if (!sockets)
        return 0;
    while (!found && fgets(line, sizeof line, sockets))
        found = sscanf(line, "%*s %*s %*s %7s %*s %*s %*s %*s %*s %31s", state, owner) == 2
            && strcmp(state, "0A") == 0 && strcmp(owner, inode) == 0;
    fclose(sockets);
    return found;
}

/* Returns the number of listening TCP sockets among the process's first 1024 descriptors. */
static int listening(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        char path[64], target[64], inode[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        if (sscanf(target, "socket:[%31[0-9]]", inode) == 1)
            count += listens("/proc/self/net/tcp", inode) || listens("/proc/self/net/tcp6", inode);
    }
    return count;
}

int main(int argc, char **argv)
{
    int sum = 0, one = 1;
    OK(MPI_Init(&argc, &argv));
    introduce();
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(listening() > 0, "no listening socket while MPI is in use, so this program shows nothing");
    OK(MPI_Finalize());
    int left = listening();
    if (left > 0) {
        fprintf(stderr, "rank %d of %d: %d listening sockets after MPI_Finalize\n", rank, size, left);
        return 1;
    }
    if (rank == 0)
        printf("all claims of finalized hold on %d ranks\n", size);
    return 0;
}
