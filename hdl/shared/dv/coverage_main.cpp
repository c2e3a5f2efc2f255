// Runs a Verilated bench to its end, and writes which lines of the RTL and of the bench it has reached to coverage.dat.
//
// The module is BENCH, which the compiler gets as a definition.
#include "verilated.h"
#include "verilated_cov.h"
#include BENCH_HEADER
#include <memory>

int main(int argc, char **argv) {
    const auto context = std::make_unique<VerilatedContext>();
    context->commandArgs(argc, argv);
    const auto top = std::make_unique<BENCH>(context.get());
    while (!context->gotFinish()) {
        top->eval();
        if (!top->eventsPending())
            break;
        context->time(top->nextTimeSlot());
    }
    top->final();
    context->coveragep()->write("coverage.dat");
    return 0;
}
