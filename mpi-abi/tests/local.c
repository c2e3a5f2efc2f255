/* Functions that need no other process, called from C as a program calls them.
   Prints one line for each claim that fails and returns how many did. */
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
    WORKS(MPI_Type_delete_attr(MPI_INT, keyval));
    WORKS(MPI_Type_free_keyval(&keyval));
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

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "freed") == 0) {
        MPI_Datatype type, stale;
        MPI_Type_contiguous(2, MPI_INT, &type);
        stale = type;
        MPI_Type_free(&type);
        MPI_Type_commit(&stale);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "absent") == 0) return MPI_Win_fence(0, MPI_WIN_NULL);
    errors_have_classes_and_texts();
    info_keeps_its_keys_in_order();
    datatypes_know_their_shape();
    attributes_go_with_their_datatype();
    operators_combine_locally();
    statuses_are_the_programs();
    return failed;
}
