//! Generator of a C program that calls all MPI functions with data buffers.
//!
//! It generates the program from the table of the C interface. Each function is called with host, device
//! and managed memory, with the same arguments and data.
//! The results in the function's buffers, a window, a file and the partner rank must be equal for
//! all kinds of memory. So the generator needs no description of each function's effect.

use mpi_api_tables::{Function, Param};
use std::fmt::Write as _;

/// Returns true if the parameter is a data buffer.
fn is_memory(p: &Param) -> bool {
    let is_of_attribute = matches!(p.name.as_str(), "attribute_val" | "extra_state");
    p.base == "void"
        && p.stars == 1
        && p.array.is_empty()
        && !p.is_pointer_address
        && !is_of_attribute
}

/// Returns true if the function takes buffers of elements of a datatype.
pub fn has_buffers(f: &Function) -> bool {
    let of_type = |p: &Param| p.base == "MPI_Datatype" && p.stars == 0;
    f.params.iter().any(is_memory) && f.params.iter().any(of_type)
}

fn has(f: &Function, name: &str) -> bool {
    f.params.iter().any(|p| p.name == name)
}

/// Returns the name of a collective operation without the prefix and suffix of its variants.
fn operation(f: &Function) -> &str {
    let name = f.name.trim_start_matches("MPI_");
    let name = name.strip_suffix("_c").unwrap_or(name);
    let name = name.strip_suffix("_init").unwrap_or(name);
    match name.strip_prefix('I') {
        Some(rest) => rest,
        None => name,
    }
}

/// Returns the name of the parameter that may be `MPI_IN_PLACE`,
/// and true if all ranks may pass it, false if only the root may.
fn in_place(f: &Function) -> Option<(&'static str, bool)> {
    match operation(f).to_lowercase().as_str() {
        "allgather"
        | "allgatherv"
        | "allreduce"
        | "alltoall"
        | "alltoallv"
        | "alltoallw"
        | "reduce_scatter"
        | "reduce_scatter_block"
        | "scan"
        | "exscan" => Some(("sendbuf", true)),
        "gather" | "gatherv" | "reduce" => Some(("sendbuf", false)),
        "scatter" | "scatterv" => Some(("recvbuf", false)),
        _ => None,
    }
}

/// Returns the C expression for a parameter; `buffers` counts the buffers used so far.
fn argument(f: &Function, p: &Param, buffers: &mut u32, place: Option<(&str, bool)>) -> String {
    if is_memory(p) {
        let buffer = format!("b[{buffers}]");
        *buffers += 1;
        return match place {
            Some((name, true)) if name == p.name => "MPI_IN_PLACE".into(),
            Some((name, false)) if name == p.name => {
                format!("(rank == 1 ? MPI_IN_PLACE : {buffer})")
            }
            _ => buffer,
        };
    }
    let wide = if p.base == "int" { "int" } else { "long" };
    let of_bytes = if f.params.iter().any(|p| p.name == "sendtypes") {
        "bytes"
    } else {
        "places"
    };
    match p.name.as_str() {
        "count" if has(f, "partitions") => "length / 2".into(),
        "count" | "sendcount" | "recvcount" | "incount" | "origin_count" | "target_count"
        | "outcount" | "result_count" => "length".into(),
        "sendcounts" | "recvcounts" => format!("counts_{wide}"),
        "sdispls" | "rdispls" | "displs" => format!("{of_bytes}_{wide}"),
        "sendtypes" | "recvtypes" => "types".into(),
        "partitions" => "2".into(),
        "dest" | "source" | "target_disp" | "offset" => "0".into(),
        "root" => "1".into(),
        "tag" | "sendtag" | "recvtag" => "5".into(),
        "comm" if f.name.to_lowercase().contains("neighbor") => "ring".into(),
        "comm" if has(f, "dest") || has(f, "source") || has(f, "position") => {
            "MPI_COMM_SELF".into()
        }
        "comm" => "MPI_COMM_WORLD".into(),
        "op" => "MPI_SUM".into(),
        "request" => "&request".into(),
        "status" => "MPI_STATUS_IGNORE".into(),
        "message" => "&message".into(),
        "info" => "MPI_INFO_NULL".into(),
        "win" => "win".into(),
        "target_rank" => "next".into(),
        "fh" => "file".into(),
        "outsize" | "insize" => "size_of_buffers".into(),
        "position" => format!("&position_{wide}"),
        "datarep" => "\"external32\"".into(),
        _ if p.base == "MPI_Datatype" => "MPI_INT".into(),
        other => panic!(
            "{} has a parameter {other} that no argument is known for",
            f.name
        ),
    }
}

/// Returns the C statements before and after a call that make the matching send or receive.
fn around(f: &Function) -> (String, String) {
    let (mut before, mut after) = (String::new(), String::new());
    let is_partitioned = has(f, "partitions");
    // In the table, as in the standard's binding, the source of a partitioned receive is named `dest`.
    let is_precv = f.name.starts_with("MPI_Precv");
    let sends = has(f, "dest") && !is_precv;
    let receives = has(f, "source") || has(f, "message") || is_precv;
    match (sends, receives, is_partitioned) {
        (true, false, false) => before += "partner_receives(); ",
        (false, true, false) => before += "partner_sends(); ",
        (true, false, true) => before += "partner_receives_parts(); ",
        (false, true, true) => before += "partner_sends_parts(); ",
        _ => {}
    }
    if has(f, "message") {
        before += "OK(MPI_Mprobe(0, 5, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE)); ";
    }
    if has(f, "win") {
        before += "open_epoch(); ";
    }
    if has(f, "fh") {
        before += "prepare_file(); ";
    }
    match (has(f, "request"), f.name.contains("_init")) {
        (true, true) if sends && is_partitioned => {
            after += "OK(MPI_Start(&request)); OK(MPI_Pready_range(0, 1, request)); "
        }
        (true, true) => after += "OK(MPI_Start(&request)); ",
        _ => {}
    }
    if has(f, "request") {
        after += "OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); ";
    }
    if f.name.contains("_init") {
        after += "OK(MPI_Request_free(&request)); ";
    }
    if sends != receives {
        after += "partner_ends(); ";
    }
    if has(f, "win") {
        after += "close_epoch(); ";
    }
    if let Some(name) = f
        .name
        .strip_suffix("_c")
        .unwrap_or(&f.name)
        .strip_suffix("_begin")
    {
        let _ = write!(after, "OK({name}_end(file, b[0], MPI_STATUS_IGNORE)); ");
    }
    if has(f, "fh") {
        after += "read_file(); ";
    }
    (before, after)
}

fn call(f: &Function, place: Option<(&str, bool)>) -> String {
    let mut buffers = 0;
    let arguments: Vec<String> = (f.params.iter())
        .map(|p| argument(f, p, &mut buffers, place))
        .collect();
    let (before, after) = around(f);
    format!("{before}OK({}({})); {after}", f.name, arguments.join(", "))
}

/// Returns the source of the C program that calls these functions.
pub fn program(functions: &[&Function]) -> String {
    let (mut bodies, mut table) = (String::new(), String::new());
    for f in functions {
        let forms = [Some(None), in_place(f).map(Some)];
        for (index, place) in forms.into_iter().flatten().enumerate() {
            let name = format!("call_{}_{index}", f.name);
            let body = call(f, place);
            let _ = writeln!(bodies, "static void {name}(char **b) {{ (void)b; {body}}}");
            let _ = writeln!(table, "    {{\"{}\", {name}}},", f.name);
        }
    }
    FRAME
        .replace("@BODIES@", &bodies)
        .replace("@TABLE@", &table)
}

const FRAME: &str = r#"/* Every function with buffers, with memory of the host, of a device and managed memory. Generated by tests/tests/devices/calls.rs. */
#include "device.h"

enum { RANKS = 3, BUFFERS = 3, PASSES = 3, LONGEST = 20000 };

static int length, next, counts_int[RANKS], places_int[RANKS], bytes_int[RANKS], position_int;
static MPI_Count counts_long[RANKS];
static MPI_Aint places_long[RANKS], bytes_long[RANKS];
static MPI_Count position_long;
static MPI_Datatype types[RANKS];
static MPI_Comm ring;
static MPI_Request request, partner;
static MPI_Message message;
static MPI_Win win;
static MPI_File file;
static size_t size_of_buffers;
static char *window, *other, *results[PASSES][BUFFERS + 1];

static void partner_receives(void) { OK(MPI_Irecv(other, length, MPI_INT, 0, 5, MPI_COMM_SELF, &partner)); }
static void partner_sends(void) { OK(MPI_Isend(other, length, MPI_INT, 0, 5, MPI_COMM_SELF, &partner)); }
static void partner_receives_parts(void)
{
    OK(MPI_Precv_init(other, 2, length / 2, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_INFO_NULL, &partner));
    OK(MPI_Start(&partner));
}
static void partner_sends_parts(void)
{
    OK(MPI_Psend_init(other, 2, length / 2, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_INFO_NULL, &partner));
    OK(MPI_Start(&partner));
    OK(MPI_Pready_range(0, 1, partner));
}
static void partner_ends(void)
{
    OK(MPI_Wait(&partner, MPI_STATUS_IGNORE));
    if (partner != MPI_REQUEST_NULL)
        OK(MPI_Request_free(&partner));
}
static void open_epoch(void)
{
    fill(window, size_of_buffers, 90 + rank);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
}
static void close_epoch(void)
{
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memcpy(other, window, size_of_buffers);
}
static void prepare_file(void)
{
    OK(MPI_File_write_at(file, 0, other, length, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
}
static void read_file(void) { OK(MPI_File_read_at(file, 0, other, length, MPI_INT, MPI_STATUS_IGNORE)); }

@BODIES@
static const struct { const char *name; void (*call)(char **); } all[] = {
@TABLE@};

/* The shape of the arguments. */
static void measure(int elements)
{
    length = elements;
    size_of_buffers = RANKS * sizeof(int) * (size_t)length;
    for (int i = 0; i < RANKS; i++) {
        counts_int[i] = length, counts_long[i] = length;
        places_int[i] = i * length, places_long[i] = i * length;
        bytes_int[i] = i * length * 4, bytes_long[i] = i * length * 4;
        types[i] = MPI_INT;
    }
}

static void allocate(char *buffers[PASSES][BUFFERS])
{
    for (int i = 0; i < BUFFERS; i++) {
        buffers[0][i] = malloc(size_of_buffers);
        buffers[1][i] = device_memory(size_of_buffers);
        buffers[2][i] = managed_memory(size_of_buffers);
    }
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i <= BUFFERS; i++)
            results[pass][i] = malloc(size_of_buffers);
}

static void try_all(int elements)
{
    char *buffers[PASSES][BUFFERS], *model;
    measure(elements);
    allocate(buffers);
    model = malloc(size_of_buffers);
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        for (int pass = 0; pass < PASSES; pass++) {
            for (int i = 0; i < BUFFERS; i++) {
                fill(model, size_of_buffers, 3 * rank + i);
                pass ? put(buffers[pass][i], model, size_of_buffers) : (void)memcpy(buffers[pass][i], model, size_of_buffers);
            }
            fill(other, size_of_buffers, 50 + rank);
            position_int = 0, position_long = 0;
            all[n].call(buffers[pass]);
            for (int i = 0; i < BUFFERS; i++)
                pass ? get(results[pass][i], buffers[pass][i], size_of_buffers)
                     : (void)memcpy(results[pass][i], buffers[pass][i], size_of_buffers);
            memcpy(results[pass][BUFFERS], other, size_of_buffers);
            for (int i = 0; i <= BUFFERS; i++)
                CHECK(!memcmp(results[pass][i], results[0][i], size_of_buffers), "%s leaves other data in %s %d of pass %d",
                      all[n].name, i < BUFFERS ? "buffer" : "what it reaches", i, pass);
        }
    for (int i = 0; i < BUFFERS; i++) {
        free(buffers[0][i]);
        discard(buffers[1][i]), discard(buffers[2][i]);
    }
}

int main(int argc, char **argv)
{
    int one = 1;
    char name[4096];
    load_cuda(argv[1]);
    use_device();
    begin(&argc, &argv);
    CHECK(size == RANKS, "%d ranks", size);
    next = (rank + 1) % size;
    measure(LONGEST);
    size_t longest = size_of_buffers;
    other = calloc(longest, 1);
    OK(MPI_Buffer_attach(malloc(longest + MPI_BSEND_OVERHEAD), (int)longest + MPI_BSEND_OVERHEAD));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &one, 0, &ring));
    OK(MPI_Win_allocate((MPI_Aint)longest, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win));
    snprintf(name, sizeof name, "%s/device_calls.%d", getenv("TMPDIR"), rank);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    try_all(24);
    try_all(LONGEST);
    OK(MPI_File_close(&file));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&ring));
    return finish("device_calls");
}
"#;
