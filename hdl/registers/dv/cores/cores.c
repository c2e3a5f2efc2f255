/* Program of every core of cores_tb.v: barriers over the register block; a waiting core polls or sleeps.
 *
 * Core 0 configures the group; the others wait until it is configured. Before each barrier each core executes a delay loop of varying length. */
#include <stdint.h>

#include "barrier_regs.h"

/* The testbench's mailbox: the core's parameters and results. */
#define BENCH ((volatile uint32_t *)0x20000000)
enum { CORE, CORES, SLEEPS, ROUNDS, ENTERS, LEFT, FINISHED };

#define REGS ((volatile uint32_t *)0x10000000)

/* PicoRV32's instruction that stops the core until an interrupt is pending. All interrupts are masked, so no handler runs. */
static inline void wait_for_interrupt(void)
{
    __asm__ volatile(".word 0x0800428b" ::: "t0", "memory");
}

static void run(void)
{
    uint32_t me = BENCH[CORE], sleeps = BENCH[SLEEPS], rounds = BENCH[ROUNDS], level = 0, pause = 7 * me + 1;
    volatile uint32_t *page = REGS + (BARRIER_NODE_BASE + (me << 6)) / 4;

    if (sleeps)
        page[BARRIER_NODE_INTR_ENABLE / 4] = 1;
    if (me == 0) {
        REGS[(BARRIER_GROUP_BASE + BARRIER_GROUP_MASK0) / 4] = (1u << BENCH[CORES]) - 1;
        REGS[BARRIER_GLOBAL_CTRL / 4] = BARRIER_GLOBAL_CTRL_ENABLE_MASK;
    }
    while (!(REGS[BARRIER_GLOBAL_CTRL / 4] & BARRIER_GLOBAL_CTRL_ENABLE_MASK))
        ;
    for (uint32_t round = 1; round <= rounds; round++) {
        pause = (pause * 5 + 3) & 15;
        for (uint32_t left = pause; left; left--)
            __asm__ volatile("");
        level ^= 1;
        BENCH[ENTERS] = round;
        page[BARRIER_NODE_ARRIVE / 4] = level;
        do {
            if (sleeps) {
                wait_for_interrupt();
                page[BARRIER_NODE_INTR_STATE / 4] = 1;
            }
        } while ((page[BARRIER_NODE_LEVEL / 4] & 1) != level);
        BENCH[LEFT] = round;
    }
    BENCH[FINISHED] = 1;
    for (;;)
        ;
}

/* The reset address. The stack grows down from the end of the 2 KiB memory. */
__attribute__((naked, section(".start"))) void start(void)
{
    __asm__ volatile("li sp, 0x800\n\tj %0" ::"i"(run));
}
