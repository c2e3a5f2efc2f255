/*
 * Names, arguments, variables and info values are bytes and are returned unchanged.
 * Arguments: "job", every byte except zero, a folder for files.
 * The spawned process gets "child" and the same two arguments.
 */
#include "check.h"
#include <fcntl.h>
#include <unistd.h>

#define VALUES 255
#define VARIABLE "ANY_BYTES"

/* A string of each byte except zero, once. */
static char every[VALUES + 1];
/* A private-use character in UTF-8; a library may represent invalid bytes by such characters. */
static const char private_use[] = "\xef\x9f\xa4\xe4";

static void arguments(int argc, char **argv)
{
    CHECK(argc == 7, "%d arguments", argc);
    CHECK(!strcmp(argv[2], every), "an argument of every byte has %zu", strlen(argv[2]));
    CHECK(!strcmp(argv[4], "two\nlines\n"), "an argument of two lines is \"%s\"", argv[4]);
    CHECK(!strcmp(argv[5], private_use), "an argument is \"%s\"", argv[5]);
    CHECK(!*argv[6], "an empty argument is \"%s\"", argv[6]);
}

/* Creates a file whose name contains every byte that is valid in a file name. */
static void files(const char *folder)
{
    char path[4096], name[VALUES + 1], *end = name;
    MPI_File file;
    for (int byte = 1; byte <= VALUES; byte++)
        if (byte != '/')
            *end++ = byte;
    *end = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    CHECK(!access(path, F_OK), "the file has another name than \"%s\"", path);
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    MPI_Info info;
    char told[4096];
    int length = sizeof told, flag;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get_string(info, "filename", &length, told, &flag));
    CHECK(!flag || !strcmp(told, path), "its hint is \"%s\"", told);
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
    CHECK(access(path, F_OK), "the file is there after it was closed");

    /* Opens a file that another program created. */
    snprintf(path, sizeof path, "%s/\xe4-%s", folder, private_use);
    int made = creat(path, 0600);
    CHECK(made >= 0 && !close(made), "no file \"%s\"", path);
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    OK(MPI_File_delete(path, MPI_INFO_NULL));
    CHECK(access(path, F_OK), "the file is there after it was deleted");
}

static void values(void)
{
    MPI_Info info;
    MPI_Comm comm;
    char told[1024];
    int length = sizeof told, flag;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "\xe4", every));
    OK(MPI_Info_get_string(info, "\xe4", &length, told, &flag));
    CHECK(flag && length == VALUES + 1 && !strcmp(told, every), "a value of %d bytes came back", length);
    OK(MPI_Info_get_nthkey(info, 0, told));
    CHECK(!strcmp(told, "\xe4"), "the key is \"%s\"", told);
    OK(MPI_Info_free(&info));

    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_name(comm, every + 128));
    OK(MPI_Comm_get_name(comm, told, &length));
    CHECK(length == VALUES - 128 && !strcmp(told, every + 128), "a name of %d bytes came back", length);
    OK(MPI_Comm_free(&comm));

    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME], service[64];
    snprintf(service, sizeof service, "\xe4\n%s %d", private_use, (int)getpid());
    snprintf(port, sizeof port, "\xff%s", private_use);
    OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    OK(MPI_Lookup_name(service, MPI_INFO_NULL, found));
    CHECK(!strcmp(found, port), "the port \"%s\" was published as \"%s\"", port, found);
    OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));

    /* Checks the process's own working folder. */
    char here[1024];
    CHECK(getcwd(here, sizeof here), "no working folder");
    length = sizeof told;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "wdir", &length, told, &flag));
    CHECK(flag && !strcmp(told, here), "the working folder is \"%s\"", told);
}

/* Spawns this program with a working folder whose name has unusual bytes. */
static void spawn(char **argv)
{
    char variable[VALUES + 32];
    char *rest[] = {"child", every, argv[3], "two\nlines\n", (char *)private_use, "", NULL};
    int code = -1;
    MPI_Info info;
    MPI_Comm children;
    /* In the info value "env", a newline ends a variable. */
    snprintf(variable, sizeof variable, VARIABLE "=%s", every + 10);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "wdir", argv[3]));
    OK(MPI_Info_set(info, "env", variable));
    OK(MPI_Comm_spawn(argv[0], rest, 1, info, 0, MPI_COMM_SELF, &children, &code));
    CHECK(code == MPI_SUCCESS, "code %d", code);
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_disconnect(&children));
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    for (int byte = 1; byte <= VALUES; byte++)
        every[byte - 1] = byte;
    begin(&argc, &argv);
    arguments(argc, argv);
    const char *variable = getenv(VARIABLE);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        char here[1024];
        CHECK(!strcmp(argv[1], "child"), "the first argument is \"%s\"", argv[1]);
        CHECK(variable && !strcmp(variable, every + 10), "a variable of %zu bytes", variable ? strlen(variable) : 0);
        CHECK(getcwd(here, sizeof here) && !strcmp(here, argv[3]), "it began in \"%s\"", here);
        OK(MPI_Comm_disconnect(&parent));
        OK(MPI_Finalize());
        return 0;
    }
    CHECK(variable && !strcmp(variable, every), "a variable of %zu bytes", variable ? strlen(variable) : 0);
    if (rank == 0) {
        files(argv[3]);
        values();
        spawn(argv);
    }
    return finish("any_bytes");
}
