/* Test of the tool interface's events: of messages, rendezvous and communicators, with order and times.
 * The number of dropped events is reported too. */
#include "check.h"

#define WORKS(call) CHECK((call) == MPI_SUCCESS, "%s", #call)
#define CLASS(call, expected) CHECK((call) == (expected), "%s is not %s", #call, #expected)
#define MOST 32
#define MANY (3 * 4096)

struct seen {
    const char *name;
    int count;
    long long dropped;
    MPI_Count elements[MOST][4], times[MOST];
    MPI_T_event_registration registration;
    MPI_T_event_instance last;
};

static void sees(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    struct seen *seen = data;
    int source = -1, number;
    CHECK(registration == seen->registration, "%s", seen->name);
    CHECK(safety == MPI_T_CB_REQUIRE_NONE || safety == MPI_T_CB_REQUIRE_MPI_RESTRICTED, "%d", (int)safety);
    if (safety == MPI_T_CB_REQUIRE_NONE)
        OK(MPI_Comm_size(MPI_COMM_WORLD, &number));
    seen->last = instance;
    if (seen->count < MOST) {
        MPI_Count first;
        WORKS(MPI_T_event_copy(instance, seen->elements[seen->count]));
        WORKS(MPI_T_event_read(instance, 0, &first));
        CHECK(first == seen->elements[seen->count][0], "%lld", (long long)first);
        CLASS(MPI_T_event_read(instance, 4, &first), MPI_T_ERR_INVALID_INDEX);
        WORKS(MPI_T_event_get_timestamp(instance, &seen->times[seen->count]));
        WORKS(MPI_T_event_get_source(instance, &source));
        CHECK(source == 0, "%d", source);
    }
    seen->count++;
}

static void loses(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void *data)
{
    struct seen *seen = data;
    (void)safety;
    CHECK(registration == seen->registration && source == 0, "%d", source);
    seen->dropped += count;
}

static void ends(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)registration;
    (void)safety;
    ++*(int *)data;
}

static int index_of(const char *name)
{
    int index;
    WORKS(MPI_T_event_get_index(name, &index));
    return index;
}

static void watch(struct seen *seen, const char *name, MPI_Comm *comm, MPI_T_cb_safety safety)
{
    memset(seen, 0, sizeof *seen);
    seen->name = name;
    WORKS(MPI_T_event_handle_alloc(index_of(name), comm, MPI_INFO_NULL, &seen->registration));
    WORKS(MPI_T_event_register_callback(seen->registration, safety, MPI_INFO_NULL, seen, sees));
}

static void expect(struct seen *seen, int at, MPI_Count a, MPI_Count b, MPI_Count c)
{
    MPI_Count *found = seen->elements[at];
    CHECK(seen->count > at, "%s: %d events", seen->name, seen->count);
    CHECK(found[0] == a && found[1] == b && found[2] == c, "%s: %lld %lld %lld", seen->name, (long long)found[0],
            (long long)found[1], (long long)found[2]);
}

/* Every event type and event source has a description, and can be found by its name. */
static void list(void)
{
    int events, sources, categories, found, in_categories = 0;
    WORKS(MPI_T_event_get_num(&events));
    CHECK(events >= 8, "%d", events);
    for (int i = 0; i < events; i++) {
        char name[128], text[512];
        int name_len = sizeof name, text_len = sizeof text, elements = 4, verbosity, bind;
        MPI_Datatype types[4];
        MPI_Aint displacements[4];
        MPI_T_enum items;
        MPI_Info info;
        WORKS(MPI_T_event_get_info(i, name, &name_len, &verbosity, types, displacements, &elements, &items, &info, text, &text_len, &bind));
        CHECK(name_len == (int)strlen(name) + 1 && text_len == (int)strlen(text) + 1, "%s", name);
        CHECK(elements >= 1 && elements <= 4 && types[elements - 1] == MPI_COUNT, "%s", name);
        CHECK(displacements[elements - 1] == (elements - 1) * (MPI_Aint)sizeof(MPI_Count), "%s", name);
        OK(MPI_Info_free(&info));
        WORKS(MPI_T_event_get_index(name, &found));
        CHECK(found == i, "%s has index %d", name, found);
        elements = 0;
        WORKS(MPI_T_event_get_info(i, NULL, NULL, NULL, types, NULL, &elements, NULL, NULL, NULL, NULL, NULL));
        CHECK(elements >= 1, "%d", elements);
    }
    CLASS(MPI_T_event_get_info(events, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    WORKS(MPI_T_source_get_num(&sources));
    CHECK(sources == 1, "%d", sources);
    MPI_T_source_order order;
    MPI_Count ticks, most;
    WORKS(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, &order, &ticks, &most, NULL));
    CHECK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000, "%lld ticks", (long long)ticks);
    CLASS(MPI_T_source_get_info(1, NULL, NULL, NULL, NULL, &order, &ticks, &most, NULL), MPI_T_ERR_INVALID_INDEX);
    WORKS(MPI_T_category_get_num(&categories));
    for (int i = 0; i < categories; i++) {
        int indices[64];
        WORKS(MPI_T_category_get_num_events(i, &found));
        WORKS(MPI_T_category_get_events(i, 64, indices));
        for (int j = 0; j < found; j++)
            CHECK(indices[j] >= 0 && indices[j] < events, "%d", indices[j]);
        in_categories += found;
    }
    CHECK(in_categories == events, "%d of %d events are in categories", in_categories, events);
}

/* An enumeration has names for the values of its variable. */
static void enumerations(void)
{
    int variables, named = 0;
    WORKS(MPI_T_pvar_get_num(&variables));
    for (int i = 0; i < variables; i++) {
        int class, items, length = 64, value, bind;
        char name[64];
        MPI_Datatype type;
        MPI_T_enum of;
        WORKS(MPI_T_pvar_get_info(i, NULL, NULL, NULL, &class, &type, &of, NULL, NULL, &bind, NULL, NULL, NULL));
        CHECK((of != MPI_T_ENUM_NULL) == (class == MPI_T_PVAR_CLASS_STATE), "variable %d", i);
        if (of == MPI_T_ENUM_NULL)
            continue;
        named++;
        CHECK(type == MPI_INT, "variable %d", i);
        WORKS(MPI_T_enum_get_info(of, &items, name, &length));
        CHECK(items > 1 && length == (int)strlen(name) + 1, "%s", name);
        for (int j = 0; j < items; j++) {
            length = 64;
            WORKS(MPI_T_enum_get_item(of, j, &value, name, &length));
        }
        CLASS(MPI_T_enum_get_item(of, items, &value, name, &length), MPI_T_ERR_INVALID_ITEM);
        MPI_T_pvar_session session;
        MPI_T_pvar_handle handle;
        int now[2] = {-1, -1};
        WORKS(MPI_T_pvar_session_create(&session));
        WORKS(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &length));
        WORKS(MPI_T_pvar_read(session, handle, now));
        CHECK(now[0] >= 0 && now[1] == -1, "%d %d", now[0], now[1]);
        WORKS(MPI_T_pvar_session_free(&session));
    }
    CHECK(named >= 2, "%d", named);
}

static void messages(void)
{
    static char lots[4 << 20];
    struct seen unexpected, matched, begins, ends_seen, receive_begins, receive_ends, elsewhere;
    MPI_Comm pair, other;
    MPI_Count now;
    int word = 7;

    OK(MPI_Comm_dup(MPI_COMM_WORLD, &pair));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    watch(&unexpected, "pml_ob1_message_unexpected", &pair, MPI_T_CB_REQUIRE_NONE);
    watch(&matched, "pml_ob1_message_matched", &pair, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    watch(&begins, "pml_ob1_rendezvous_begins", &pair, MPI_T_CB_REQUIRE_THREAD_SAFE);
    watch(&ends_seen, "pml_ob1_rendezvous_ends", &pair, MPI_T_CB_REQUIRE_THREAD_SAFE);
    watch(&receive_begins, "pml_ob1_rendezvous_receive_begins", &pair, MPI_T_CB_REQUIRE_NONE);
    watch(&receive_ends, "pml_ob1_rendezvous_receive_ends", &pair, MPI_T_CB_REQUIRE_NONE);
    watch(&elsewhere, "pml_ob1_message_matched", &other, MPI_T_CB_REQUIRE_NONE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Send(&word, 1, MPI_INT, 1, 3, pair));
        OK(MPI_Send(&word, 1, MPI_INT, 1, 4, other));
        OK(MPI_Ssend(lots, sizeof lots, MPI_CHAR, 1, 5, pair));
        CHECK(begins.count == 1 && ends_seen.count == 1, "%d, %d", begins.count, ends_seen.count);
        expect(&begins, 0, 1, 5, sizeof lots);
        expect(&ends_seen, 0, 1, 5, sizeof lots);
        CHECK(receive_begins.count == 0 && receive_ends.count == 0, "%d, %d", receive_begins.count, receive_ends.count);
        CHECK(begins.times[0] <= ends_seen.times[0], "%lld", (long long)begins.times[0]);
    } else if (rank == 1) {
        OK(MPI_Probe(0, 4, other, MPI_STATUS_IGNORE));
        CHECK(unexpected.count >= 1, "%d", unexpected.count);
        expect(&unexpected, 0, 0, 3, sizeof word);
        CHECK(matched.count == 0, "%d", matched.count);
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 3, pair, MPI_STATUS_IGNORE));
        CHECK(matched.count == 1, "%d", matched.count);
        expect(&matched, 0, 0, 3, sizeof word);
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 4, other, MPI_STATUS_IGNORE));
        OK(MPI_Recv(lots, sizeof lots, MPI_CHAR, 0, 5, pair, MPI_STATUS_IGNORE));
        expect(&matched, 1, 0, 5, sizeof lots);
        CHECK(receive_begins.count == 1 && receive_ends.count == 1, "%d, %d", receive_begins.count, receive_ends.count);
        expect(&receive_begins, 0, 0, 5, sizeof lots);
        expect(&receive_ends, 0, 0, 5, sizeof lots);
        CHECK(matched.times[1] <= receive_begins.times[0] && receive_begins.times[0] <= receive_ends.times[0], "%lld",
                (long long)receive_begins.times[0]);
        CHECK(begins.count == 0 && ends_seen.count == 0, "%d, %d", begins.count, ends_seen.count);
        CHECK(matched.count == 2 && elsewhere.count == 1, "%d, %d", matched.count, elsewhere.count);
        WORKS(MPI_T_source_get_timestamp(0, &now));
        CHECK(unexpected.times[0] <= matched.times[0] && matched.times[0] <= matched.times[1] && matched.times[1] <= now,
                "%lld", (long long)now);
        CLASS(MPI_T_event_get_timestamp(matched.last, &now), MPI_T_ERR_INVALID_HANDLE);
    }
    OK(MPI_Comm_free(&pair));
    OK(MPI_Comm_free(&other));
}

/* A tool that reads its events too slowly is notified of the number of dropped events. */
static void many(void)
{
    static MPI_Request requests[2 * MANY];
    static char bytes[MANY];
    struct seen matched;
    MPI_Comm self = MPI_COMM_SELF;
    watch(&matched, "pml_ob1_message_matched", &self, MPI_T_CB_REQUIRE_NONE);
    WORKS(MPI_T_event_set_dropped_handler(matched.registration, loses));
    for (int i = 0; i < MANY; i++) {
        OK(MPI_Recv_init(bytes + i, 1, MPI_CHAR, 0, 1, self, &requests[i]));
        OK(MPI_Send_init(bytes + i, 1, MPI_CHAR, 0, 1, self, &requests[MANY + i]));
    }
    OK(MPI_Startall(2 * MANY, requests));
    OK(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
    CHECK(matched.dropped > 0 && matched.count + matched.dropped == MANY, "%d seen, %lld dropped", matched.count, matched.dropped);
    for (int i = 0; i < 2 * MANY; i++)
        OK(MPI_Request_free(&requests[i]));
    int freed = 0;
    WORKS(MPI_T_event_handle_free(matched.registration, &freed, ends));
    CHECK(freed == 1, "%d", freed);
    CLASS(MPI_T_event_handle_free(matched.registration, &freed, ends), MPI_T_ERR_INVALID_HANDLE);
    int count = matched.count;
    OK(MPI_Sendrecv(bytes, 1, MPI_CHAR, 0, 2, bytes + 1, 1, MPI_CHAR, 0, 2, self, MPI_STATUS_IGNORE));
    CHECK(matched.count == count, "%d", matched.count);
}

int main(int argc, char **argv)
{
    struct seen made, freed;
    int provided;
    MPI_Comm half;
    MPI_Info info;

    WORKS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    watch(&made, "mpi_base_communicator_made", NULL, MPI_T_CB_REQUIRE_NONE);
    watch(&freed, "mpi_base_communicator_freed", NULL, MPI_T_CB_REQUIRE_NONE);
    CLASS(MPI_T_event_register_callback(made.registration, 1, MPI_INFO_NULL, NULL, sees), MPI_T_ERR_INVALID);
    CLASS(MPI_T_event_handle_alloc(index_of("pml_ob1_message_matched"), NULL, MPI_INFO_NULL, &made.registration), MPI_T_ERR_INVALID);
    WORKS(MPI_T_event_callback_get_info(made.registration, MPI_T_CB_REQUIRE_NONE, &info));
    OK(MPI_Info_free(&info));
    list();
    begin(&argc, &argv);
    enumerations();
    int before = made.count;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    CHECK(made.count == before + 1, "%d", made.count);
    CHECK(made.elements[before][1] == rank / 2 && made.elements[before][2] == (size + 1 - rank % 2) / 2, "%lld of %lld",
            (long long)made.elements[before][1], (long long)made.elements[before][2]);
    CHECK(made.elements[before][3] == (MPI_Count)half, "%lld", (long long)made.elements[before][3]);
    MPI_Count number = made.elements[before][0];
    OK(MPI_Comm_free(&half));
    CHECK(freed.count == 1 && freed.elements[0][0] == number, "%d", freed.count);
    if (size > 1)
        messages();
    many();
    WORKS(MPI_T_finalize());
    return finish("events");
}
