/* Port names fit MPI_MAX_PORT_NAME, and a lookup returns the published name. */
#include "check.h"

/* Opens a port with the hints in `info`, publishes the port's name, and looks it up. */
static void found_again(MPI_Info info, const char *which)
{
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME], service[64];
    memset(port, 'x', sizeof port);
    memset(found, 'y', sizeof found);
    snprintf(service, sizeof service, "service-of-rank-%d-%s", rank, which);
    OK(MPI_Open_port(info, port));
    CHECK(memchr(port, 0, sizeof port), "the name of a port has no end");
    CHECK(port[0], "a port has no name");
    OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    OK(MPI_Lookup_name(service, info, found));
    CHECK(memchr(found, 0, sizeof found) && !strcmp(port, found), "published %s, found %s", port, found);
    OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
    OK(MPI_Close_port(port));
}

int main(int argc, char **argv)
{
    MPI_Info info;
    begin(&argc, &argv);
    found_again(MPI_INFO_NULL, "no-hints");
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "colour", "green"));
    found_again(info, "a-hint");
    int keys;
    OK(MPI_Info_get_nkeys(info, &keys));
    CHECK(keys == 1, "the info has %d keys", keys);
    OK(MPI_Info_free(&info));
    return finish("port_names");
}
