// A Verilated model with its own context, so that several models can run concurrently in any threads of a process.
//
// Verilator's default context is one per process: its first user creates it while other threads may already use it,
// and it starts a thread for each further core. This class's context has only the caller's thread.
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
        // Runs the initial blocks with a low clock, so that the first high clock is a rising edge.
        top->eval();
    }

    // The destructor of a model uses the context that was created last in this thread,
    // which may be freed already; locking its mutex would then block forever.
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
