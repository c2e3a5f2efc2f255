// The Verilated channels as a shared object for crate hdl's `cosim`: sets the flip-flops, runs one clock edge, reads them back.
//
// One handle is one board; calls for one handle must not overlap.
#include "verilated_channels.h"
#include "verilated_own.h"

static_assert(C == 5, "the interface is that of a board of five channels");

using Board = Own<Vchannel_barrier>;

extern "C" {

struct Channel {
    uint64_t stage1, stage2, mask, level, limit, count, late, expired, early, overdue, toggled1, toggled2;
};

// One serial line: its synchroniser stages, its level, and the count of samples that differ from the level.
struct Line {
    uint64_t stage1, stage2, level, run;
};

// Every flip-flop of the design.
struct Registers {
    Channel channel[C];
    uint64_t select1, select2, grant, blocked, age;
    Line select, clock, data;
    uint64_t select_was, clock_was, phase, count, check, shift_low, shift_high;
};

struct Pins {
    uint64_t arrive[C], select, clock, data;
};

struct Outputs {
    uint64_t release, last;
};

void *barrier_new() { return Board::make(); }

void barrier_free(void *barrier) { Board::free(barrier); }

#define EACH_CHANNEL(DO) DO(0) DO(1) DO(2) DO(3) DO(4)
#define IN_CHANNEL(c, path) DESIGN(channel__BRA__##c##__KET____DOT__##path)

// Sets the flip-flops; combinational signals follow at the next evaluation.
void barrier_load(void *barrier, const Registers *from) {
    auto &root = *Board::of(barrier).rootp;
#define LOAD(c)                                                                                                        \
    IN_CHANNEL(c, sync__DOT__stage1_q) = from->channel[c].stage1;                                                      \
    IN_CHANNEL(c, sync__DOT__stage2_q) = from->channel[c].stage2;                                                      \
    IN_CHANNEL(c, machine__DOT__mask_q) = from->channel[c].mask;                                                       \
    IN_CHANNEL(c, machine__DOT__level_q) = from->channel[c].level;                                                     \
    IN_CHANNEL(c, machine__DOT__limit_q) = from->channel[c].limit;                                                     \
    IN_CHANNEL(c, machine__DOT__count_q) = from->channel[c].count;                                                     \
    IN_CHANNEL(c, machine__DOT__late_q) = from->channel[c].late;                                                       \
    IN_CHANNEL(c, machine__DOT__expired_q) = from->channel[c].expired;                                                 \
    IN_CHANNEL(c, machine__DOT__early_q) = from->channel[c].early;                                                     \
    IN_CHANNEL(c, machine__DOT__overdue_q) = from->channel[c].overdue;                                                 \
    IN_CHANNEL(c, machine__DOT__toggled1_q) = from->channel[c].toggled1;                                               \
    IN_CHANNEL(c, machine__DOT__toggled2_q) = from->channel[c].toggled2;
    EACH_CHANNEL(LOAD)
#undef LOAD
    DESIGN(arbiter__DOT__select1_q) = from->select1;
    DESIGN(arbiter__DOT__select2_q) = from->select2;
    DESIGN(arbiter__DOT__grant_q) = from->grant;
    DESIGN(arbiter__DOT__blocked_q) = from->blocked;
    DESIGN(arbiter__DOT__age_q) = from->age;
#define LOAD(name)                                                                                                     \
    DESIGN(name##_line__DOT__stage1_q) = from->name.stage1;                                                            \
    DESIGN(name##_line__DOT__stage2_q) = from->name.stage2;                                                            \
    DESIGN(name##_line__DOT__level_q) = from->name.level;                                                              \
    DESIGN(name##_line__DOT__run_q) = from->name.run;
    LOAD(select) LOAD(clock) LOAD(data)
#undef LOAD
    DESIGN(select_was_q) = from->select_was;
    DESIGN(clock_was_q) = from->clock_was;
    DESIGN(frame__DOT__phase_q) = from->phase;
    DESIGN(frame__DOT__count_q) = from->count;
    DESIGN(frame__DOT__check_q) = from->check;
    Bits shift;
    shift.set(0, 64, from->shift_low);
    shift.set(64, 8, from->shift_high);
    shift.to(DESIGN(frame__DOT__shift_q));
}

void barrier_store(const void *barrier, Registers *to) {
    const auto &root = *Board::of(barrier).rootp;
#define STORE(c)                                                                                                       \
    to->channel[c].stage1 = IN_CHANNEL(c, sync__DOT__stage1_q);                                                        \
    to->channel[c].stage2 = IN_CHANNEL(c, sync__DOT__stage2_q);                                                        \
    to->channel[c].mask = IN_CHANNEL(c, machine__DOT__mask_q);                                                         \
    to->channel[c].level = IN_CHANNEL(c, machine__DOT__level_q);                                                       \
    to->channel[c].limit = IN_CHANNEL(c, machine__DOT__limit_q);                                                       \
    to->channel[c].count = IN_CHANNEL(c, machine__DOT__count_q);                                                       \
    to->channel[c].late = IN_CHANNEL(c, machine__DOT__late_q);                                                         \
    to->channel[c].expired = IN_CHANNEL(c, machine__DOT__expired_q);                                                   \
    to->channel[c].early = IN_CHANNEL(c, machine__DOT__early_q);                                                       \
    to->channel[c].overdue = IN_CHANNEL(c, machine__DOT__overdue_q);                                                   \
    to->channel[c].toggled1 = IN_CHANNEL(c, machine__DOT__toggled1_q);                                                 \
    to->channel[c].toggled2 = IN_CHANNEL(c, machine__DOT__toggled2_q);
    EACH_CHANNEL(STORE)
#undef STORE
    to->select1 = DESIGN(arbiter__DOT__select1_q);
    to->select2 = DESIGN(arbiter__DOT__select2_q);
    to->grant = DESIGN(arbiter__DOT__grant_q);
    to->blocked = DESIGN(arbiter__DOT__blocked_q);
    to->age = DESIGN(arbiter__DOT__age_q);
#define STORE(name)                                                                                                    \
    to->name.stage1 = DESIGN(name##_line__DOT__stage1_q);                                                              \
    to->name.stage2 = DESIGN(name##_line__DOT__stage2_q);                                                              \
    to->name.level = DESIGN(name##_line__DOT__level_q);                                                                \
    to->name.run = DESIGN(name##_line__DOT__run_q);
    STORE(select) STORE(clock) STORE(data)
#undef STORE
    to->select_was = DESIGN(select_was_q);
    to->clock_was = DESIGN(clock_was_q);
    to->phase = DESIGN(frame__DOT__phase_q);
    to->count = DESIGN(frame__DOT__count_q);
    to->check = DESIGN(frame__DOT__check_q);
    const Bits shift = bits(DESIGN(frame__DOT__shift_q));
    to->shift_low = shift.words[0] | (uint64_t)shift.words[1] << 32;
    to->shift_high = shift.words[2];
}

// Runs one clock edge with these levels at the pins, and returns the outputs after it.
void barrier_edge(void *barrier, const Pins *pins, Outputs *outputs) {
    Vchannel_barrier &top = Board::of(barrier);
    Bits arrive;
    for (int c = 0; c < C; c++)
        arrive.set(c * N, N, pins->arrive[c]);
    arrive.to(top.arrive_i);
    top.select_i = pins->select;
    top.clock_i = pins->clock;
    top.data_i = pins->data;
    top.clk_i = 1;
    top.eval();
    top.clk_i = 0;
    top.eval();
    outputs->release = top.release_o;
    outputs->last = top.last_o;
}
}
