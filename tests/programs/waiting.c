/* Between MPI_Init and MPI_Finalize, the program waits for its test by two named pipes:
 * it writes to NAME.there, and then waits for a line in NAME. */
#include "check.h"

int main(int argc, char **argv)
{
    char name[4096], line[16];
    begin(&argc, &argv);
    if (argc > 1) {
        snprintf(name, sizeof name, "%s.there", argv[1]);
        FILE *there = fopen(name, "w");
        CHECK(there && fputs("there\n", there) >= 0 && fclose(there) == 0, "%s cannot be written", name);
        FILE *go = fopen(argv[1], "r");
        CHECK(go && fgets(line, sizeof line, go), "%s cannot be read", argv[1]);
        fclose(go);
    }
    return finish("waiting");
}
