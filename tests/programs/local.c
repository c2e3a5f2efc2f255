/* Tests in C of functions that need no other process, most of them before MPI_Init.
 * The program prints each claim that fails and returns the number of failures. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;
#define CLAIM(is) do { if (!(is)) { printf("line %d: %s\n", __LINE__, #is); failed++; } } while (0)
#define WORKS(call) CLAIM((call) == MPI_SUCCESS)

static void errors_have_classes_and_texts(void) {
    char text[MPI_MAX_ERROR_STRING];
    int len, class, code, found;
    WORKS(MPI_Error_string(MPI_ERR_TRUNCATE, text, &len));
    CLAIM(strstr(text, "message truncated on receive") && (int)strlen(text) == len);
    WORKS(MPI_Add_error_class(&class));
    CLAIM(class > MPI_ERR_LASTCODE);
    WORKS(MPI_Add_error_code(class, &code));
    WORKS(MPI_Add_error_string(code, "the coffee is cold"));
    WORKS(MPI_Error_class(code, &found));
    CLAIM(found == class);
    WORKS(MPI_Error_string(code, text, &len));
    CLAIM(strcmp(text, "the coffee is cold") == 0);
    WORKS(MPI_Remove_error_string(code));
    WORKS(MPI_Remove_error_code(code));
    WORKS(MPI_Remove_error_class(class));
}

/* The functions that convert handles between C and Fortran, which exist since MPI-2.
 * They are declared in mpi.h. */
static void handles_and_statuses_go_to_fortran_and_back(void) {
    MPI_Fint integer = MPI_Comm_c2f(MPI_COMM_WORLD), there[MPI_F_STATUS_SIZE];
    MPI_F08_status modern;
    MPI_Status status, back;
    CLAIM(MPI_Comm_f2c(integer) == MPI_COMM_WORLD && PMPI_Comm_f2c(PMPI_Comm_c2f(MPI_COMM_SELF)) == MPI_COMM_SELF);
    CLAIM(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE && MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
    CLAIM(MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    memset(&status, 0, sizeof status);
    status.MPI_SOURCE = 3;
    status.MPI_TAG = 4;
    status.MPI_ERROR = MPI_ERR_TAG;
    WORKS(MPI_Status_set_elements(&status, MPI_INT, 5));
    WORKS(MPI_Status_c2f(&status, there));
    CLAIM(there[MPI_F_SOURCE] == 3 && there[MPI_F_TAG] == 4 && there[MPI_F_ERROR] == MPI_ERR_TAG);
    WORKS(MPI_Status_f2f08(there, &modern));
    CLAIM(modern.MPI_SOURCE == 3);
    WORKS(MPI_Status_f082c(&modern, &back));
    CLAIM(memcmp(&back, &status, sizeof back) == 0);
    memset(&back, 0, sizeof back);
    WORKS(PMPI_Status_f2c(there, &back));
    CLAIM(memcmp(&back, &status, sizeof back) == 0);
}

static void info_keeps_its_keys_in_order(void) {
    MPI_Info info, copy;
    char value[64], key[MPI_MAX_INFO_KEY];
    int flag, n, len = sizeof value;
    WORKS(MPI_Info_create(&info));
    WORKS(MPI_Info_set(info, "b", "one"));
    WORKS(MPI_Info_set(info, "a", "two"));
    WORKS(MPI_Info_dup(info, &copy));
    WORKS(MPI_Info_delete(info, "b"));
    WORKS(MPI_Info_get_nkeys(info, &n));
    CLAIM(n == 1);
    WORKS(MPI_Info_get_nthkey(copy, 0, key));
    CLAIM(strcmp(key, "b") == 0);
    WORKS(MPI_Info_get_string(copy, "a", &len, value, &flag));
    CLAIM(flag && len == 4 && strcmp(value, "two") == 0);
    len = 2;
    WORKS(MPI_Info_get_string(copy, "a", &len, value, &flag));
    CLAIM(flag && len == 4 && strcmp(value, "t") == 0);
    WORKS(MPI_Info_free(&info));
    WORKS(MPI_Info_free(&copy));
    CLAIM(info == MPI_INFO_NULL);
}

static void datatypes_know_their_shape(void) {
    MPI_Datatype vector, copy, of[1];
    MPI_Aint lb, extent, addresses[1];
    MPI_Count large;
    int size, n_int, n_addr, n_type, combiner, numbers[3], from[12], to[12], position = 0, i;
    char packed[64];
    WORKS(MPI_Type_vector(2, 3, 4, MPI_INT, &vector));
    WORKS(MPI_Type_commit(&vector));
    WORKS(MPI_Type_size(vector, &size));
    WORKS(MPI_Type_get_extent(vector, &lb, &extent));
    CLAIM(size == 24 && lb == 0 && extent == 28);
    WORKS(MPI_Type_size_c(vector, &large));
    CLAIM(large == 24);
    WORKS(MPI_Type_get_envelope(vector, &n_int, &n_addr, &n_type, &combiner));
    CLAIM(n_int == 3 && n_addr == 0 && n_type == 1 && combiner == MPI_COMBINER_VECTOR);
    WORKS(MPI_Type_get_contents(vector, 3, 0, 1, numbers, addresses, of));
    CLAIM(numbers[0] == 2 && numbers[1] == 3 && numbers[2] == 4 && of[0] == MPI_INT);
    for (i = 0; i < 12; i++) from[i] = i, to[i] = -1;
    WORKS(MPI_Pack(from, 1, vector, packed, sizeof packed, &position, MPI_COMM_SELF));
    CLAIM(position == 24);
    position = 0;
    WORKS(MPI_Unpack(packed, sizeof packed, &position, to, 1, vector, MPI_COMM_SELF));
    CLAIM(position == 24 && to[2] == 2 && to[3] == -1 && to[4] == 4 && to[7] == -1);
    WORKS(MPI_Type_dup(vector, &copy));
    WORKS(MPI_Type_free(&vector));
    CLAIM(vector == MPI_DATATYPE_NULL);
    WORKS(MPI_Type_size(copy, &size));
    CLAIM(size == 24 && MPI_Type_fromint(MPI_Type_toint(copy)) == copy);
    WORKS(MPI_Type_free(&copy));
}

static int deleted;
static int count_deletion(MPI_Datatype type, int keyval, void *value, void *extra) {
    (void)type, (void)keyval, (void)value;
    deleted += *(int *)extra;
    return MPI_SUCCESS;
}

static void attributes_go_with_their_datatype(void) {
    MPI_Datatype type, copy;
    int keyval, one = 1, flag, *value;
    WORKS(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, count_deletion, &keyval, &one));
    WORKS(MPI_Type_contiguous(2, MPI_DOUBLE, &type));
    WORKS(MPI_Type_set_attr(type, keyval, &one));
    WORKS(MPI_Type_dup(type, &copy));
    WORKS(MPI_Type_free_keyval(&keyval));
    CLAIM(keyval == MPI_KEYVAL_INVALID);
    WORKS(MPI_Type_free(&type));
    CLAIM(deleted == 1);
    WORKS(MPI_Type_free(&copy));
    CLAIM(deleted == 2);
    WORKS(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL));
    WORKS(MPI_Type_get_attr(MPI_INT, keyval, &value, &flag));
    CLAIM(!flag);
    WORKS(MPI_Type_set_attr(MPI_INT, keyval, &one));
    WORKS(MPI_Type_get_attr(MPI_INT, keyval, &value, &flag));
    CLAIM(flag && value == &one);
    int kept = keyval;
    WORKS(MPI_Type_free_keyval(&keyval));
    WORKS(MPI_Type_get_attr(MPI_INT, kept, &value, &flag));
    CLAIM(flag && value == &one);
    WORKS(MPI_Type_delete_attr(MPI_INT, kept));
}

static MPI_Datatype seen;
static void add_pairs(void *in, void *inout, int *len, MPI_Datatype *type) {
    int i;
    seen = *type;
    for (i = 0; i < 2 * *len; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void operators_combine_locally(void) {
    int a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40}, commutes;
    MPI_Op op;
    MPI_Datatype pair;
    WORKS(MPI_Reduce_local(a, b, 4, MPI_INT, MPI_SUM));
    CLAIM(b[0] == 11 && b[3] == 44);
    WORKS(MPI_Op_create(add_pairs, 1, &op));
    WORKS(MPI_Op_commutative(op, &commutes));
    CLAIM(commutes == 1);
    WORKS(MPI_Type_contiguous(2, MPI_INT, &pair));
    WORKS(MPI_Type_commit(&pair));
    WORKS(MPI_Reduce_local(a, b, 2, pair, op));
    CLAIM(b[0] == 12 && b[3] == 48 && seen == pair);
    WORKS(MPI_Type_free(&pair));
    WORKS(MPI_Op_free(&op));
    CLAIM(op == MPI_OP_NULL);
}

static void statuses_are_the_programs(void) {
    MPI_Status status;
    MPI_Count many;
    int n;
    memset(&status, 0, sizeof status);
    WORKS(MPI_Status_set_elements(&status, MPI_DOUBLE, 3));
    WORKS(MPI_Get_count(&status, MPI_INT, &n));
    CLAIM(n == 6);
    WORKS(MPI_Get_count(&status, MPI_LONG_DOUBLE, &n));
    CLAIM(n == MPI_UNDEFINED);
    WORKS(MPI_Status_set_elements_c(&status, MPI_BYTE, (MPI_Count)1 << 40));
    WORKS(MPI_Get_count_c(&status, MPI_BYTE, &many));
    CLAIM(many == (MPI_Count)1 << 40);
    WORKS(MPI_Get_count(&status, MPI_BYTE, &n));
    CLAIM(n == MPI_UNDEFINED);
}

static void performance_variables_are_read(void) {
    int provided, n, i, index, len, class, bind, readonly, continuous, count;
    char name[256];
    unsigned long long value = 7;
    MPI_Datatype type;
    MPI_T_enum items;
    MPI_T_pvar_session session, none = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle handle;
    CLAIM(MPI_T_pvar_session_create(&session) == MPI_T_ERR_NOT_INITIALIZED);
    WORKS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    WORKS(MPI_T_pvar_get_num(&n));
    CLAIM(n > 5);
    WORKS(MPI_T_pvar_session_create(&session));
    for (i = 0; i < n; i++) {
        len = sizeof name;
        WORKS(MPI_T_pvar_get_info(i, name, &len, NULL, &class, &type, &items, NULL, NULL, &bind, &readonly, &continuous, NULL));
        CLAIM(items == MPI_T_ENUM_NULL ? type == MPI_UNSIGNED_LONG_LONG : type == MPI_INT);
        CLAIM(readonly == continuous);
        WORKS(MPI_T_pvar_get_index(name, class, &index));
        CLAIM(index == i);
        CLAIM(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, &index) == MPI_T_ERR_INVALID_NAME);
        if (bind != MPI_T_BIND_NO_OBJECT) {
            /* A variable that is bound to a communicator, window or file has no object before MPI_Init. */
            CLAIM(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count) == MPI_T_ERR_INVALID);
            continue;
        }
        WORKS(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
        WORKS(MPI_T_pvar_read(session, handle, &value));
        CLAIM(count == 1 && value == 0);
        CLAIM(MPI_T_pvar_read(none, handle, &value) == MPI_T_ERR_INVALID_SESSION);
        /* Variables that are not continuous count only while MPI is initialized. */
        CLAIM(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
        CLAIM(MPI_T_pvar_reset(session, handle) == (continuous ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS));
        CLAIM(MPI_T_pvar_write(session, handle, &value) == MPI_T_ERR_PVAR_NO_WRITE);
        if (i % 2)
            WORKS(MPI_T_pvar_handle_free(session, &handle));
    }
    CLAIM(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    WORKS(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CLAIM(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value) == MPI_T_ERR_INVALID_HANDLE);
    CLAIM(MPI_T_pvar_handle_alloc(session, n, NULL, &handle, &count) == MPI_T_ERR_INVALID_INDEX);
    WORKS(MPI_T_pvar_session_free(&session));
    CLAIM(session == MPI_T_PVAR_SESSION_NULL && MPI_T_pvar_session_free(&session) == MPI_T_ERR_INVALID_SESSION);
    CLAIM(MPI_T_enum_get_info(items, &n, name, &len) == MPI_T_ERR_INVALID_HANDLE);
    WORKS(MPI_T_finalize());
}

static void parameters_are_control_variables(void) {
    int provided, n, i, index, len, count, of_categories = 0, categories, indices[1];
    char name[256], value[1024];
    MPI_Datatype type;
    MPI_T_cvar_handle handle;
    CLAIM(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    CLAIM(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    setenv("PORTCULLIS_MCA_pml_ob1_unexpected_max", "9m", 1);
    WORKS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    WORKS(MPI_T_cvar_get_num(&n));
    CLAIM(n > 10);
    for (i = 0; i < n; i++) {
        len = sizeof name;
        WORKS(MPI_T_cvar_get_info(i, name, &len, NULL, &type, NULL, NULL, NULL, NULL, NULL));
        CLAIM(len == (int)strlen(name) + 1 && type == MPI_CHAR);
        WORKS(MPI_T_cvar_get_index(name, &index));
        CLAIM(index == i);
    }
    CLAIM(MPI_T_cvar_get_info(n, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CLAIM(MPI_T_cvar_get_index("no such thing", &index) == MPI_T_ERR_INVALID_NAME);
    CLAIM(MPI_T_pvar_get_index("no such thing", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_T_ERR_INVALID_NAME);
    CLAIM(MPI_T_category_get_index("no such thing", &index) == MPI_T_ERR_INVALID_NAME);
    CLAIM(MPI_T_event_get_index("no such thing", &index) == MPI_T_ERR_INVALID_NAME);

    WORKS(MPI_T_cvar_get_index("pml_ob1_unexpected_max", &index));
    len = 4;
    WORKS(MPI_T_cvar_get_info(index, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CLAIM(!strcmp(name, "pml") && len == (int)sizeof "pml_ob1_unexpected_max");
    WORKS(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    WORKS(MPI_T_cvar_read(handle, value));
    CLAIM(!strcmp(value, "9m") && count == 3);
    CLAIM(MPI_T_cvar_write(handle, "1m") == MPI_T_ERR_CVAR_SET_NEVER);
    WORKS(MPI_T_cvar_handle_free(&handle));
    CLAIM(handle == MPI_T_CVAR_HANDLE_NULL && MPI_T_cvar_handle_free(&handle) == MPI_T_ERR_INVALID_HANDLE);

    WORKS(MPI_T_category_get_num(&categories));
    for (i = 0; i < categories; i++) {
        len = sizeof name;
        WORKS(MPI_T_category_get_info(i, name, &len, NULL, NULL, &count, NULL, NULL));
        WORKS(MPI_T_category_get_index(name, &index));
        CLAIM(index == i);
        of_categories += count;
        WORKS(MPI_T_category_get_cvars(i, 1, indices));
        len = sizeof value;
        WORKS(MPI_T_cvar_get_info(indices[0], value, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CLAIM(!strncmp(name, value, strlen(name)));
    }
    CLAIM(of_categories == n);
    WORKS(MPI_T_finalize());
    CLAIM(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    unsetenv("PORTCULLIS_MCA_pml_ob1_unexpected_max");
}

static int refuse_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)type, (void)keyval, (void)extra, (void)in, (void)out;
    *flag = 1;
    return MPI_ERR_OTHER;
}

/* The call fails and sets `handle`, which was `before`, to `null`. */
#define MAKES_NOTHING(call, handle, before, null) do { handle = before; CLAIM((call) != MPI_SUCCESS); CLAIM(handle == null); } while (0)

static int file_errors;

static void count_file_error(MPI_File *file, int *code, ...) {
    (void)code;
    file_errors += *file == MPI_FILE_NULL;
}

/* Errors on communicators are fatal here. */
static void files_that_are_not_there_raise_errors_on_the_handler_of_no_file(void) {
    MPI_Errhandler counting;
    MPI_File file = MPI_File_fromint(1);
    int class;
    WORKS(MPI_Error_class(MPI_File_open(MPI_COMM_SELF, "there/is/none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), &class));
    CLAIM(class == MPI_ERR_NO_SUCH_FILE && file == MPI_FILE_NULL);
    WORKS(MPI_File_create_errhandler(count_file_error, &counting));
    WORKS(MPI_File_set_errhandler(MPI_FILE_NULL, counting));
    WORKS(MPI_Errhandler_free(&counting));
    CLAIM(MPI_File_delete("there/is/none", MPI_INFO_NULL) != MPI_SUCCESS && file_errors == 1);
    WORKS(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
}

static void what_was_not_made_is_null(void) {
    MPI_Comm comm, self = MPI_COMM_SELF;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Request request;
    MPI_Message message;
    MPI_Info info;
    MPI_Errhandler errhandler;
    MPI_Op op;
    MPI_Session session;
    MPI_Win win;
    int flag, keyval, data = 0;
    WORKS(MPI_Init(NULL, NULL));
    files_that_are_not_there_raise_errors_on_the_handler_of_no_file();
    WORKS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    WORKS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    MAKES_NOTHING(MPI_Comm_dup(MPI_COMM_NULL, &comm), comm, MPI_COMM_WORLD, MPI_COMM_NULL);
    MAKES_NOTHING(MPI_Cart_create(MPI_COMM_SELF, 1, (int[]){2}, (int[]){0}, 0, &comm), comm, MPI_COMM_WORLD, MPI_COMM_NULL);
    MAKES_NOTHING(MPI_Group_incl(MPI_GROUP_EMPTY, 1, (int[]){0}, &group), group, MPI_GROUP_EMPTY, MPI_GROUP_NULL);
    MAKES_NOTHING(MPI_Type_contiguous(-1, MPI_INT, &type), type, MPI_INT, MPI_DATATYPE_NULL);
    MAKES_NOTHING(MPI_Type_contiguous_c(-1, MPI_INT, &type), type, MPI_INT, MPI_DATATYPE_NULL);
    MAKES_NOTHING(MPI_Comm_create_errhandler(NULL, &errhandler), errhandler, MPI_ERRORS_RETURN, MPI_ERRHANDLER_NULL);
    MAKES_NOTHING(MPI_Info_dup(MPI_INFO_NULL, &info), info, MPI_INFO_ENV, MPI_INFO_NULL);
    MAKES_NOTHING(MPI_Op_create(NULL, 0, &op), op, MPI_SUM, MPI_OP_NULL);
    MAKES_NOTHING(MPI_Session_init(MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &session), session, MPI_Session_fromint(1), MPI_SESSION_NULL);
    MAKES_NOTHING(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win), win, MPI_Win_fromint(1), MPI_WIN_NULL);
    MAKES_NOTHING(MPI_Mprobe(5, 0, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE), message, MPI_MESSAGE_NO_PROC, MPI_MESSAGE_NULL);
    MAKES_NOTHING(MPI_Improbe(5, 0, MPI_COMM_SELF, &flag, &message, MPI_STATUS_IGNORE), message, MPI_MESSAGE_NO_PROC, MPI_MESSAGE_NULL);
    MPI_Request some = MPI_Request_fromint(1);
    MAKES_NOTHING(MPI_Isend(&data, 1, MPI_INT, 5, 0, MPI_COMM_SELF, &request), request, some, MPI_REQUEST_NULL);
    MAKES_NOTHING(MPI_Irecv(&data, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &request), request, some, MPI_REQUEST_NULL);
    MAKES_NOTHING(MPI_Ibcast(&data, 1, MPI_INT, 5, MPI_COMM_SELF, &request), request, some, MPI_REQUEST_NULL);
    MAKES_NOTHING(MPI_Bcast_init(&data, 1, MPI_INT, 5, MPI_COMM_SELF, MPI_INFO_NULL, &request), request, some, MPI_REQUEST_NULL);
    comm = MPI_COMM_WORLD;
    MAKES_NOTHING(MPI_Comm_idup(MPI_COMM_NULL, &comm, &request), request, some, MPI_REQUEST_NULL);
    CLAIM(comm == MPI_COMM_NULL);
    CLAIM(MPI_Type_contiguous(-1, MPI_INT, NULL) != MPI_SUCCESS);

    /* The copy function returns an error, so the duplication fails. */
    WORKS(MPI_Type_create_keyval(refuse_copy, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL));
    WORKS(MPI_Type_set_attr(MPI_INT, keyval, NULL));
    MAKES_NOTHING(MPI_Type_dup(MPI_INT, &type), type, MPI_INT, MPI_DATATYPE_NULL);
    WORKS(MPI_Type_delete_attr(MPI_INT, keyval));
    WORKS(MPI_Type_free_keyval(&keyval));

    /* A failed call leaves its input arguments unchanged. */
    CLAIM(MPI_Comm_free(&self) != MPI_SUCCESS && self == MPI_COMM_SELF);
    type = MPI_INT;
    CLAIM(MPI_Type_free(&type) != MPI_SUCCESS && type == MPI_INT);
    keyval = MPI_TAG_UB;
    CLAIM(MPI_Comm_free_keyval(&keyval) != MPI_SUCCESS && keyval == MPI_TAG_UB);
    request = some;
    CLAIM(MPI_Start(&request) != MPI_SUCCESS && request == some);
    CLAIM(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS && request == some);
    CLAIM(MPI_Cancel(&request) != MPI_SUCCESS && request == some);
    CLAIM(MPI_Request_free(&request) != MPI_SUCCESS && request == some);
    message = MPI_Message_fromint(1);
    CLAIM(MPI_Mrecv(&data, 1, MPI_INT, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS && message == MPI_Message_fromint(1));
    MAKES_NOTHING(MPI_Imrecv(&data, 1, MPI_INT, &message, &request), request, some, MPI_REQUEST_NULL);
    CLAIM(message == MPI_Message_fromint(1));
    WORKS(MPI_Finalize());
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "freed") == 0) {
        MPI_Datatype type, stale;
        MPI_Type_contiguous(2, MPI_INT, &type);
        stale = type;
        MPI_Type_free(&type);
        MPI_Type_commit(&stale);
        return 0;
    }
    errors_have_classes_and_texts();
    handles_and_statuses_go_to_fortran_and_back();
    info_keeps_its_keys_in_order();
    datatypes_know_their_shape();
    attributes_go_with_their_datatype();
    operators_combine_locally();
    statuses_are_the_programs();
    parameters_are_control_variables();
    performance_variables_are_read();
    what_was_not_made_is_null();
    return failed;
}
