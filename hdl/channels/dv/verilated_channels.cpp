// Harness of the Verilated channel_barrier; its stimulus and trace have the formats of channel_trace_tb.v.
//
//   trace STIMULUS TRACE   reads one line "rst arrive select clock data" (hexadecimal) per clock edge and
//                          writes one line with the outputs and every flip-flop after that edge
//   bench EDGES            applies random arrivals to channel 0, then prints "edges seconds releases"
#include "verilated_channels.h"
#include <chrono>
#include <cinttypes>
#include <cstdlib>

// Prints a flip-flop of all channels as one number, channel 0 lowest.
#define CHANNEL(c, path) all.set((c) * width, width, (uint64_t)DESIGN(channel__BRA__##c##__KET____DOT__##path));
#if PARAM_C > 1
#define CHANNEL_1(path) CHANNEL(1, path)
#else
#define CHANNEL_1(path)
#endif
#if PARAM_C > 2
#define CHANNEL_2(path) CHANNEL(2, path)
#else
#define CHANNEL_2(path)
#endif
#if PARAM_C > 3
#define CHANNEL_3(path) CHANNEL(3, path)
#else
#define CHANNEL_3(path)
#endif
#if PARAM_C > 4
#define CHANNEL_4(path) CHANNEL(4, path)
#else
#define CHANNEL_4(path)
#endif
#define CHANNELS(out, path, bits_of_one)                                                                               \
    {                                                                                                                  \
        Bits all;                                                                                                      \
        const int width = bits_of_one;                                                                                 \
        CHANNEL(0, path) CHANNEL_1(path) CHANNEL_2(path) CHANNEL_3(path) CHANNEL_4(path)                               \
        all.print(out, C * width);                                                                                     \
    }

// Prints one serial line: its two stages, its level, its count of differing samples.
#define LINE(out, name)                                                                                                \
    bits(DESIGN(name##__DOT__stage1_q) << 4 | DESIGN(name##__DOT__stage2_q) << 3 | DESIGN(name##__DOT__level_q) << 2 | \
         DESIGN(name##__DOT__run_q))                                                                                   \
        .print(out, 5)

static int trace(const char *stimulus, const char *trace) {
    Vchannel_barrier top;
    const auto &root = *top.rootp;
    // Runs the initial blocks with a low clock, so that the first high clock is a rising edge.
    top.clk_i = 0;
    top.eval();
    FILE *in = fopen(stimulus, "r");
    FILE *out = fopen(trace, "w");
    if (!in || !out) {
        fprintf(stderr, "cannot open %s or %s\n", stimulus, trace);
        return 1;
    }
    unsigned reset;
    char arrive[97];
    uint64_t select, clock, data;
    while (fscanf(in, "%x %96s %" SCNx64 " %" SCNx64 " %" SCNx64, &reset, arrive, &select, &clock, &data) == 5) {
        Bits lines;
        lines.read(arrive);
        lines.to(top.arrive_i);
        top.rst_i = reset;
        top.select_i = select;
        top.clock_i = clock;
        top.data_i = data;
        // The outputs are read after both halves of the period, as in Icarus' testbench.
        top.clk_i = 1;
        top.eval();
        top.clk_i = 0;
        top.eval();
        bits(top.release_o).print(out, C);
        bits(top.last_o).print(out, N);
        CHANNELS(out, sync__DOT__stage1_q, N)
        CHANNELS(out, sync__DOT__stage2_q, N)
        CHANNELS(out, machine__DOT__mask_q, N)
        CHANNELS(out, machine__DOT__late_q, N)
        CHANNELS(out, machine__DOT__limit_q, 32)
        CHANNELS(out, machine__DOT__count_q, 32)
        CHANNELS(out, machine__DOT__expired_q, 8)
        CHANNELS(out, machine__DOT__early_q, 8)
        CHANNELS(out, machine__DOT__overdue_q, 1)
        CHANNELS(out, machine__DOT__toggled1_q, 1)
        CHANNELS(out, machine__DOT__toggled2_q, 1)
        bits(DESIGN(arbiter__DOT__select1_q)).print(out, N);
        bits(DESIGN(arbiter__DOT__select2_q)).print(out, N);
        bits(DESIGN(arbiter__DOT__grant_q)).print(out, N);
        bits(DESIGN(arbiter__DOT__blocked_q)).print(out, N);
        bits(DESIGN(arbiter__DOT__age_q)).print(out, PARAM_LEASE_BITS);
        LINE(out, select_line);
        LINE(out, clock_line);
        LINE(out, data_line);
        bits(DESIGN(select_was_q) << 1 | DESIGN(clock_was_q)).print(out, 2);
        bits(DESIGN(frame__DOT__phase_q)).print(out, 2);
        bits(DESIGN(frame__DOT__count_q)).print(out, 7);
        bits(DESIGN(frame__DOT__check_q)).print(out, 16);
        bits(DESIGN(frame__DOT__shift_q)).print(out, 72);
        fputc('\n', out);
    }
    fclose(in);
    return fclose(out) == 0 ? 0 : 1;
}

// Applies the random arrivals of version 1's benchmark to channel 0.
static int bench(uint64_t edges) {
    Vchannel_barrier top;
    uint64_t random = 0x2545f4914f6cdd1d, inputs = 0, outputs = 0, releases = 0;
    const uint64_t wires = ~0ull >> (64 - N);
    top.clk_i = 0;
    top.eval();
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t n = 0; n < edges; n++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        inputs ^= random & ~(inputs ^ outputs) & wires;
        Bits lines;
        lines.words[0] = (uint32_t)inputs;
        lines.words[1] = (uint32_t)(inputs >> 32);
        lines.to(top.arrive_i);
        top.clk_i = 1;
        top.eval();
        top.clk_i = 0;
        top.eval();
        const uint64_t now = top.release_o & 1 ? wires : 0;
        releases += outputs != now;
        outputs = now;
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
