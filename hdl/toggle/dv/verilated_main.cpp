// Harness of the Verilated toggle_barrier; its stimulus and trace have the formats of trace_tb.v.
//
//   trace STIMULUS TRACE   reads one line "rst inputs" per clock edge, writes one line "outputs stage1 stage2 seen" per edge
//   bench EDGES            applies random arrivals, then prints "edges seconds releases"
#include "Vtoggle_barrier.h"
#include "Vtoggle_barrier___024root.h"
#include "verilated.h"
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Runs the initial blocks with a low clock, so that the first high clock is a rising edge.
static void power_on(Vtoggle_barrier &top) {
    top.clk_i = 0;
    top.rst_i = 0;
    top.node_i = 0;
    top.eval();
}

static void edge(Vtoggle_barrier &top) {
    top.clk_i = 1;
    top.eval();
    top.clk_i = 0;
    top.eval();
}

static int trace(const char *stimulus, const char *trace) {
    Vtoggle_barrier top;
    power_on(top);
    FILE *in = fopen(stimulus, "r");
    FILE *out = fopen(trace, "w");
    if (!in || !out) {
        fprintf(stderr, "cannot open %s or %s\n", stimulus, trace);
        return 1;
    }
    unsigned reset;
    uint64_t inputs;
    while (fscanf(in, "%x %" SCNx64, &reset, &inputs) == 2) {
        top.rst_i = reset;
        top.node_i = inputs;
        edge(top);
        const auto &root = *top.rootp;
        fprintf(out, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", (uint64_t)top.node_o,
                (uint64_t)root.toggle_barrier__DOT__sync__DOT__stage1_q,
                (uint64_t)root.toggle_barrier__DOT__sync__DOT__stage2_q,
                (uint64_t)root.toggle_barrier__DOT__arrived);
    }
    fclose(in);
    return fclose(out) == 0 ? 0 : 1;
}

// Applies the arrivals of fpga-model's benchmark: at each edge a random subset of the nodes outside enters.
static int bench(uint64_t edges) {
    Vtoggle_barrier top;
    uint64_t random = 0x2545f4914f6cdd1d, inputs = 0, outputs = 0, releases = 0;
    const uint64_t wires = ~0ull >> (64 - PARAM_N);
    power_on(top);
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t n = 0; n < edges; n++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        inputs ^= random & ~(inputs ^ outputs) & wires;
        top.node_i = inputs;
        edge(top);
        releases += outputs != top.node_o;
        outputs = top.node_o;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    printf("%" PRIu64 " %.6f %" PRIu64 "\n", edges, took.count(), releases);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "trace"))
        return trace(argv[2], argv[3]);
    if (argc == 3 && !strcmp(argv[1], "bench"))
        return bench(strtoull(argv[2], nullptr, 10));
    fprintf(stderr, "usage: %s trace STIMULUS TRACE | bench EDGES\n", argv[0]);
    return 2;
}
