// Helpers of the harnesses of the Verilated channels: numbers of any width, and the names of flip-flops.
//
// PARAM_N and PARAM_C have the values of the design's parameters N and C that Verilator gets.
#pragma once
#include "Vchannel_barrier.h"
#include "Vchannel_barrier___024root.h"
#include "verilated.h"
#include <cstdint>
#include <cstdio>
#include <cstring>

static const int N = PARAM_N;
static const int C = PARAM_C;

// A number of up to 384 bits, with conversions from and to Verilator's ports and flip-flops of any width.
struct Bits {
    uint32_t words[12] = {};

    void set(int at, int width, uint64_t value) {
        for (int n = 0; n < width; n++)
            words[(at + n) / 32] |= (uint32_t)(value >> n & 1) << (at + n) % 32;
    }

    void read(const char *text) {
        int at = 0;
        for (size_t n = strlen(text); n-- > 0; at += 4) {
            const char digit = text[n];
            set(at, 4, digit <= '9' ? digit - '0' : digit - 'a' + 10);
        }
    }

    // Prints in hexadecimal like Verilog's %h: the width determines the digits.
    void print(FILE *out, int width) const {
        for (int digit = (width + 3) / 4; digit-- > 0;)
            fputc("0123456789abcdef"[words[digit / 8] >> digit % 8 * 4 & 15], out);
        fputc(' ', out);
    }

    template <class T> void to(T &port) const { port = (T)(words[0] | (uint64_t)words[1] << 32); }
    template <std::size_t W> void to(VlWide<W> &port) const {
        for (std::size_t n = 0; n < W; n++)
            port[n] = words[n];
    }
};

template <class T> static Bits bits(const T &value) {
    Bits all;
    all.set(0, 64, (uint64_t)value);
    return all;
}

template <std::size_t W> static Bits bits(const VlWide<W> &value) {
    Bits all;
    for (std::size_t n = 0; n < W; n++)
        all.words[n] = value[n];
    return all;
}

#define DESIGN(path) root.channel_barrier__DOT__##path
