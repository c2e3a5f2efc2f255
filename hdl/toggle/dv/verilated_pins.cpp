// The Verilated toggle barrier as a shared object for crate hdl's `cosim`, which gives it embedded-hal pins.
//
// One handle is one barrier; calls for one handle must not overlap.
#include "Vtoggle_barrier.h"
#include "Vtoggle_barrier___024root.h"
#include "verilated_own.h"
#include <cstdint>

using Barrier = Own<Vtoggle_barrier>;

extern "C" {

// Every flip-flop of the design. The output is stored as one bit per node, because it is read from the output pins.
struct Registers {
    uint64_t stage1, stage2, output;
};

void *barrier_new() { return Barrier::make(); }

void barrier_free(void *barrier) { Barrier::free(barrier); }

// Runs this number of clock edges with these inputs; returns the outputs and adds the number of their changes to *releases.
uint64_t barrier_step(void *barrier, uint64_t inputs, uint64_t edges, uint64_t *releases) {
    Vtoggle_barrier *top = &Barrier::of(barrier);
    top->node_i = inputs;
    for (uint64_t n = 0; n < edges; n++) {
        const uint64_t before = top->node_o;
        top->clk_i = 1;
        top->eval();
        top->clk_i = 0;
        top->eval();
        *releases += top->node_o != before;
    }
    return top->node_o;
}

// Sets the flip-flops; the outputs follow at the next edge.
void barrier_load(void *barrier, const Registers *from) {
    auto &root = *Barrier::of(barrier).rootp;
    root.toggle_barrier__DOT__sync__DOT__stage1_q = from->stage1;
    root.toggle_barrier__DOT__sync__DOT__stage2_q = from->stage2;
    root.toggle_barrier__DOT__machine__DOT__level_q = from->output != 0;
}

void barrier_store(const void *barrier, Registers *to) {
    const auto &top = Barrier::of(barrier);
    to->stage1 = top.rootp->toggle_barrier__DOT__sync__DOT__stage1_q;
    to->stage2 = top.rootp->toggle_barrier__DOT__sync__DOT__stage2_q;
    to->output = top.node_o;
}
}
