// Harness of mutation scores: applies stimuli to the Verilated module `play`, which contains all mutants of a design,
// and compares the outputs after each edge with the expected ones.
//
//   BITS LAST STIMULUS EXPECTED [STIMULUS EXPECTED]...
//
// The inputs above the lowest BITS, those of a line, select one of the mutants 0 to LAST; 0 is the original.
// For each it prints one line: "MUTANT killed STIMULUS EDGE SEEN" with the first difference, or "MUTANT same".
// Each stimulus begins at power-on, and the first that shows a difference is the last.
#include "Vplay.h"
#include "verilated.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef std::vector<uint64_t> Lines;

static Lines read(const char *name) {
    Lines lines;
    FILE *in = fopen(name, "r");
    if (!in) {
        perror(name);
        exit(1);
    }
    char line[128];
    while (fscanf(in, "%127s", line) == 1)
        lines.push_back(strtoull(line, nullptr, 2));
    fclose(in);
    return lines;
}

// Returns the first edge after which the outputs differ, counted from 1, or 0.
static size_t difference(uint64_t mutant, const Lines &stimulus, const Lines &expected, uint64_t &seen) {
    VerilatedContext context;
    context.threads(1);
    Vplay top(&context);
    static_assert(sizeof top.in_i <= sizeof mutant, "the inputs and the number of the mutant have at most 64 bits");
    // Runs the initial blocks with a low clock, so that the first high clock is a rising edge.
    top.in_i = mutant;
    top.clk_i = 0;
    top.eval();
    for (size_t edge = 0; edge < stimulus.size(); edge++) {
        top.in_i = mutant | stimulus[edge];
        top.clk_i = 1;
        top.eval();
        top.clk_i = 0;
        top.eval();
        seen = top.out_o;
        if (seen != expected[edge])
            return edge + 1;
    }
    return 0;
}

int main(int count, char **arguments) {
    const int bits = atoi(arguments[1]);
    const uint64_t last = strtoull(arguments[2], nullptr, 10);
    std::vector<Lines> stimuli;
    for (int n = 3; n < count; n++)
        stimuli.push_back(read(arguments[n]));
    for (uint64_t mutant = 0; mutant <= last; mutant++) {
        size_t edge = 0, at = 0;
        uint64_t seen = 0;
        for (; at < stimuli.size() && !edge; at += 2)
            edge = difference(mutant << bits, stimuli[at], stimuli[at + 1], seen);
        if (edge)
            printf("%llu killed %zu %zu %llx\n", (unsigned long long)mutant, at / 2, edge, (unsigned long long)seen);
        else
            printf("%llu same\n", (unsigned long long)mutant);
    }
    return 0;
}
