/* A small debugger that attaches to a rank and prints its message queues.
 * It loads the message queue library that the rank names;
 * that library reads the rank's memory by callbacks (/proc/PID/mem). Usage: queue_debugger PID */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long taddr;
typedef long tword;
typedef struct { void *info; char file[4096]; taddr base; } image;
typedef struct { void *info; image *image; int memory; } process;
typedef struct { taddr unique_id; tword local_rank, size; char name[64]; } communicator;
typedef struct {
    int status;
    tword desired_local_rank, desired_global_rank;
    int tag_wild;
    tword desired_tag, desired_length;
    int system_buffer;
    taddr buffer;
    tword actual_local_rank, actual_global_rank, actual_tag, actual_length;
    char extra_text[5][64];
} operation;

static void fail(const char *what)
{
    fprintf(stderr, "queue_debugger: %s\n", what);
    exit(1);
}

static void print(const char *text) { fputs(text, stderr); }
static char *error_text(int code) { (void)code; return "an error"; }
static void put_image(image *of, void *info) { of->info = info; }
static void *get_image_info(image *of) { return of->info; }
static void put_process(process *of, void *info) { of->info = info; }
static void *get_process_info(process *of) { return of->info; }
static void type_sizes(process *of, void *sizes) { (void)of; memset(sizes, 0, 5 * sizeof(int)); }
static int no_function(image *of, char *name, int language, taddr *at) { (void)of, (void)name, (void)language, (void)at; return 1; }
static void *no_type(image *of, char *name, int language) { (void)of, (void)name, (void)language; return NULL; }
static int no_field(void *type, char *name) { (void)type, (void)name; return -1; }
static int no_size(void *type) { (void)type; return 0; }
static int global_rank(process *of) { (void)of; return 0; }
static image *image_of(process *of) { return of->image; }

/* Finds the address of a symbol in the rank's MPI library. */
static int symbol(image *of, char *name, taddr *at)
{
    struct stat st;
    int found = 1, fd = open(of->file, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        fail("the library of the rank cannot be opened");
    char *file = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (file == MAP_FAILED)
        fail("the library of the rank cannot be read");
    Elf64_Ehdr *head = (Elf64_Ehdr *)file;
    Elf64_Shdr *sections = (Elf64_Shdr *)(file + head->e_shoff);
    for (int s = 0; s < head->e_shnum; s++) {
        if (sections[s].sh_type != SHT_DYNSYM)
            continue;
        Elf64_Sym *symbols = (Elf64_Sym *)(file + sections[s].sh_offset);
        char *names = file + sections[sections[s].sh_link].sh_offset;
        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols; i++)
            if (symbols[i].st_shndx != SHN_UNDEF && strcmp(names + symbols[i].st_name, name) == 0) {
                *at = of->base + symbols[i].st_value;
                found = 0;
            }
    }
    munmap(file, st.st_size);
    return found;
}

static int fetch(process *of, taddr at, int size, void *to)
{
    return pread(of->memory, to, size, (off_t)at) == size ? 0 : 1;
}

static int to_host(process *of, const void *from, void *to, int size)
{
    (void)of;
    memcpy(to, from, size);
    return 0;
}

/* Finds the file of the rank's MPI library, and its load address. */
static void find_library(int pid, image *of)
{
    char path[64], line[8192];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *file = strchr(line, '/');
        if (file && strstr(file, "libmpi_abi.so")) {
            file[strcspn(file, "\n")] = 0;
            strncpy(of->file, file, sizeof of->file - 1);
            of->base = strtoul(line, NULL, 16);
            fclose(maps);
            return;
        }
    }
    fail("the process has not loaded libmpi_abi.so");
}

static void *library;
static void *function(const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        fail(name);
    return found;
}
#define CALL(result, name, types, ...) ((result (*) types)function(#name))(__VA_ARGS__)

int main(int argc, char **argv)
{
    static image rank_image;
    static process rank = {.image = &rank_image};
    static char path[1024];
    char memory[64], *message = NULL;
    taddr at;
    communicator comm;
    operation op;
    static const char *kinds[] = {"send to", "receive from", "unexpected from"};

    int pid = argc > 1 ? atoi(argv[1]) : 0;
    find_library(pid, &rank_image);
    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0 || waitpid(pid, NULL, __WALL) != pid)
        fail("the rank cannot be attached to");
    snprintf(memory, sizeof memory, "/proc/%d/mem", pid);
    rank.memory = open(memory, O_RDONLY);

    if (symbol(&rank_image, "MPIR_dll_name", &at) != 0 || fetch(&rank, at, sizeof path, path) != 0)
        fail("the rank names no library for debuggers");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail(dlerror());
    const void *basic[] = {malloc, free, print, error_text, put_image, get_image_info, put_process, get_process_info};
    const void *images[] = {type_sizes, no_function, symbol, no_type, no_field, no_size};
    const void *processes[] = {global_rank, image_of, fetch, to_host};
    if (CALL(int, mqs_version_compatibility, (void)) != 2 || CALL(int, mqs_dll_taddr_width, (void)) != sizeof(taddr))
        fail("the library has another version");
    CALL(void, mqs_setup_basic_callbacks, (const void *), basic);
    if (CALL(int, mqs_setup_image, (image *, const void *), &rank_image, images) != 0)
        fail("no image");
    if (CALL(int, mqs_image_has_queues, (image *, char **), &rank_image, &message) != 0)
        fail(message);
    if (CALL(int, mqs_setup_process, (process *, const void *), &rank, processes) != 0)
        fail("no process");
    if (CALL(int, mqs_process_has_queues, (process *, char **), &rank, &message) != 0)
        fail(message);
    if (CALL(int, mqs_update_communicator_list, (process *), &rank) != 0)
        fail("no communicators");
    for (int more = CALL(int, mqs_setup_communicator_iterator, (process *), &rank); more == 0;
         more = CALL(int, mqs_next_communicator, (process *), &rank)) {
        int group[64] = {0};
        CALL(int, mqs_get_communicator, (process *, communicator *), &rank, &comm);
        printf("%s: rank %ld of %ld, members", comm.name, comm.local_rank, comm.size);
        if (comm.size <= 64 && CALL(int, mqs_get_comm_group, (process *, int *), &rank, group) == 0)
            for (int i = 0; i < comm.size; i++)
                printf(" %d", group[i]);
        printf("\n");
        for (int kind = 0; kind < 3; kind++) {
            CALL(int, mqs_setup_operation_iterator, (process *, int), &rank, kind);
            while (CALL(int, mqs_next_operation, (process *, operation *), &rank, &op) == 0) {
                printf("  %s %ld (%ld in the job), tag ", kinds[kind], op.desired_local_rank, op.desired_global_rank);
                if (op.tag_wild)
                    printf("any");
                else
                    printf("%ld", op.desired_tag);
                printf(", %ld bytes\n", op.desired_length);
            }
        }
    }
    CALL(void, mqs_destroy_process_info, (void *), rank.info);
    CALL(void, mqs_destroy_image_info, (void *), rank_image.info);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    return 0;
}
