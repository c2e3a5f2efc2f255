// A Verilated model with a context of its own, so that any number of them live side by side in any threads of a process.
//
// Verilator's default context is one for the process, is made by whoever comes first while others may use it already,
// and starts a thread for each further core. Ours has one thread, the caller's.
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
        // Runs the initial blocks, so that the first rise of the clock is one.
        top->eval();
    }

    // A model takes its scopes out of the thread's context, which is the last that was made in this thread,
    // and may be gone: its mutex would never be free.
    ~Own() {
        Verilated::threadContextp(&context);
        top.reset();
        Verilated::threadContextp(nullptr);
    }

    // After power-on, or null without memory.
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
