// Harness of coverage runs: applies a text of inputs, one line of bits per clock edge, to the Verilated module `play`,
// and writes to coverage.dat how often each point of the RTL was reached.
#include "verilated.h"
#include "verilated_cov.h"
#include "Vplay.h"
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

int main(int, char **arguments) {
    const auto context = std::make_unique<VerilatedContext>();
    const auto top = std::make_unique<Vplay>(context.get());
    FILE *stimulus = fopen(arguments[1], "r");
    if (!stimulus) {
        perror(arguments[1]);
        return 1;
    }
    char line[4096];
    while (fscanf(stimulus, "%4095s", line) == 1) {
        // A Verilated vector is an array of little-endian words or one integer; the bytes are the same.
        const size_t bits = strlen(line);
        uint32_t words[128] = {};
        for (size_t at = 0; at < bits; at++)
            words[at / 32] |= uint32_t(line[bits - 1 - at] == '1') << at % 32;
        memcpy(&top->in_i, words, sizeof top->in_i);
        top->clk_i = 0;
        top->eval();
        top->clk_i = 1;
        top->eval();
    }
    top->final();
    context->coveragep()->write("coverage.dat");
    return 0;
}
