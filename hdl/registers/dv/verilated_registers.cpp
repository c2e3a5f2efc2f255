// The Verilated register block as a device in a mapped file: `barrier serve FILE` simulates it until its standard input ends.
//
// The file contains the registers at their addresses. If software changes a word, the program writes it to the block over the bus; it reads
// the registers that the hardware changes from the block and stores them into the file. So every value in the file is from the RTL.
// Plain memory has two limits. A second store of the same value is not noticed. A store between the program's read and its replacement of
// a word remains in the file and becomes the next write. ARRIVE is never replaced, so no arrival is lost; for rw1c registers this is best effort.
//
// It prints "ready" after the file contains the block's registers, and at the end the number of releases of group 0.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verilated_own.h"
#include "Vbarrier_regs.h"

namespace {

constexpr unsigned nodes = PARAM_N, groups = PARAM_G, page = 1u << PARAM_STRIDE;
constexpr unsigned bytes = 0x1000 + nodes * page;

using Word = std::atomic<uint32_t>;

Own<Vbarrier_regs> own;
Vbarrier_regs *const block = own.top.get();
Word *file;
uint32_t seen[bytes / 4];

uint32_t read_register(uint32_t address) {
    block->raddr_i = address;
    block->eval();
    return block->rdata_o;
}

void edge() {
    block->clk_i = 0;
    block->eval();
    block->clk_i = 1;
    block->eval();
}

void write_register(uint32_t address, uint32_t value) {
    block->write_i = 1;
    block->waddr_i = address;
    block->wdata_i = value;
    block->wstrb_i = 15;
    edge();
    block->write_i = 0;
}

// Stores the register's present value into the file, unless software has stored another value since.
void show(uint32_t address) {
    uint32_t &last = seen[address / 4], now = read_register(address), expected = last;
    if (now != last && file[address / 4].compare_exchange_strong(expected, now))
        last = now;
}

// Writes a word to the block if software has changed it in the file.
void take(uint32_t address, bool is_arrival) {
    uint32_t now = file[address / 4].load();
    if (now == seen[address / 4])
        return;
    write_register(address, now);
    seen[address / 4] = now;
    if (!is_arrival)
        show(address);
}

const uint32_t global_written[] = {0x14, 0x18, 0x20, 0x24, 0x38};
const uint32_t global_shown[] = {0x00, 0x04, 0x08, 0x0c, 0x10, 0x20, 0x30, 0x34, 0x3c};
const uint32_t group_written[] = {0x00, 0x38, 0x58};
const uint32_t group_shown[] = {0x00, 0x10, 0x20, 0x30, 0x34, 0x38, 0x3c, 0x40, 0x48};
const uint32_t node_written[] = {0x10, 0x14, 0x18};
const uint32_t node_shown[] = {0x04, 0x08, 0x10};

void turn() {
    for (uint32_t address : global_written)
        take(address, false);
    for (unsigned g = 0; g < groups; g++)
        for (uint32_t offset : group_written)
            take(0x100 + 0x80 * g + offset, false);
    for (unsigned n = 0; n < nodes; n++) {
        take(0x1000 + page * n, true);
        for (uint32_t offset : node_written)
            take(0x1000 + page * n + offset, false);
    }
    edge();
    for (unsigned g = 0; g < groups; g++)
        for (uint32_t offset : group_shown)
            show(0x100 + 0x80 * g + offset);
    for (uint32_t address : global_shown)
        show(address);
    for (unsigned n = 0; n < nodes; n++)
        for (uint32_t offset : node_shown)
            show(0x1000 + page * n + offset);
}

}  // namespace

int main(int count, char **arguments) {
    if (count != 3 || strcmp(arguments[1], "serve") != 0) {
        fprintf(stderr, "usage: barrier serve FILE\n");
        return 2;
    }
    int descriptor = open(arguments[2], O_RDWR | O_CREAT, 0600);
    if (descriptor < 0 || ftruncate(descriptor, bytes + 0x1000) != 0) {
        perror(arguments[2]);
        return 1;
    }
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) {
        perror(arguments[2]);
        return 1;
    }
    file = static_cast<Word *>(mapped);
    block->rst_i = 1;
    edge();
    block->rst_i = 0;
    edge();
    turn();
    puts("ready");
    fflush(stdout);
    pollfd input = {0, POLLIN, 0};
    for (unsigned turns = 0;; turns++) {
        turn();
        if (turns % 64 == 0) {
            char byte;
            if (poll(&input, 1, 0) > 0 && read(0, &byte, 1) == 0)
                break;
        }
        // Yields the processor to the processes of the nodes.
        sched_yield();
    }
    printf("%u\n", read_register(0x134));
    return 0;
}
