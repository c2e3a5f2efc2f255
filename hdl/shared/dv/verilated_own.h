// A Verilated model with a context of its own, so that several models can run side by side in any threads of a process.
//
// Verilator's default context is one per process, is created by the first user while others may use it already,
// and starts a thread for each further core. This one has one thread, the caller's.
#pragma once
#include "verilated.h"
#include <memory>
#include <new>

template <class Model> struct Own {
    VerilatedContext context;
    std::unique_ptr<Model> top;

    Own() {
        context.threads(1);
        top.reset(new Model(&context));
        top->clk_i = 0;
        top->rst_i = 0;
        // Runs the initial blocks, so that the first rising edge of the clock counts.
        top->eval();
    }

    // A model removes its scopes from the thread's context, which is the last one created in this thread
    // and may be freed already: its mutex would then block forever.
    ~Own() {
        Verilated::threadContextp(&context);
        top.reset();
        Verilated::threadContextp(nullptr);
    }

    // Returns a model after power-on, or null if memory is exhausted.
    static void *make() {
        try {
            return new Own;
        } catch (const std::bad_alloc &) {
            return nullptr;
        }
    }

    static Model &of(void *own) { return *static_cast<Own *>(own)->top; }
    static const Model &of(const void *own) { return *static_cast<const Own *>(own)->top; }
    static void free(void *own) { delete static_cast<Own *>(own); }
};
