/* One node of the barrier hardware, without MPI: generated from barrier-driver/library/src/exported.rs by `cargo xtask gen`. */
#ifndef HWBARR_H
#define HWBARR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hwbarr hwbarr;

/* Opens a port, such as "uio:/dev/uio0,node=3", and puts the node's wire to the barrier's level.
   All nodes must have been opened before one of them enters its first barrier.
   Returns 0 and the node in *node, or -1. */
int hwbarr_open(const char *port, hwbarr **node);

/* Announces that this node has arrived. Returns 0, or -1. */
int hwbarr_enter(hwbarr *node);

/* Reads once whether all nodes have arrived. Returns 1 if they have, or if this node is in no barrier, 0 if not, or -1. */
int hwbarr_poll(hwbarr *node);

/* Waits until all nodes have arrived, for at most this many nanoseconds, 0 for no limit.
   Returns 0, or 1 when the time is over and the node is still in the barrier, or -1. */
int hwbarr_wait(hwbarr *node, uint64_t nanoseconds);

/* Enters and waits, as hwbarr_enter and hwbarr_wait do. */
int hwbarr_barrier(hwbarr *node, uint64_t nanoseconds);

/* Sets the start pulse of the node's register block (ports uio and mem): after each release of the node's group
   the line start_o is active for this many cycles of the block's clock, at most 65535; 0 for no pulse after this group.
   The line is low in a pulse if is_low is not 0, and high otherwise. Width and level are those of all groups. Returns 0, or -1. */
int hwbarr_set_start_pulse(hwbarr *node, uint32_t cycles, int is_low);

/* Writes the time of the release that began the last start pulse to *cycle, in cycles since the block's reset modulo 2^32,
   0 if there was no pulse, and the frequency of the block's clock in Hz to *hertz, 0 if the block does not know it. Returns 0, or -1. */
int hwbarr_start_time(hwbarr *node, uint32_t *cycle, uint32_t *hertz);

/* Withdraws an arrival that has not been released, puts the wire to the barrier's level, and releases the port. Returns 0, or -1. */
int hwbarr_close(hwbarr *node);

/* Returns why the last function of this thread failed, valid until its next failure. */
const char *hwbarr_error(void);

#ifdef __cplusplus
}
#endif

#endif
