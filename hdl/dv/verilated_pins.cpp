// The Verilated toggle barrier as a shared object: what is behind the pins of crate hdl's `cosim`.
//
// One handle is one barrier; calls for one handle must not overlap.
#include "Vtoggle_barrier.h"
#include "verilated.h"
#include <cstdint>
#include <new>

extern "C" {

// After power-on, or null without memory.
void *barrier_new() {
    Vtoggle_barrier *top = new (std::nothrow) Vtoggle_barrier;
    if (top) {
        top->clk_i = 0;
        top->rst_i = 0;
        top->node_i = 0;
        top->eval();
    }
    return top;
}

void barrier_free(void *barrier) {
    delete static_cast<Vtoggle_barrier *>(barrier);
}

// So many clock edges with these inputs; the outputs after them. Each change of the outputs is counted.
uint64_t barrier_step(void *barrier, uint64_t inputs, uint64_t edges, uint64_t *releases) {
    Vtoggle_barrier *top = static_cast<Vtoggle_barrier *>(barrier);
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
}
