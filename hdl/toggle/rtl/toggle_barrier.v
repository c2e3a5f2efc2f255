// Toggle barrier (version 1) of N nodes: one wire from each node and one wire to each node, which all have the same level.
//
// A node enters by inverting its wire, and leaves when the wire from the barrier has the same level as its own wire.
// The output changes three edges after the last arrival at the pins, see the crate fpga-model;
// FILTER successive samples of an arrival must agree, and each sample after the first adds an edge.
// From: Hoefler, Squyres, Mehlan, Mietke, Rehm: Implementing a Hardware-based Barrier in Open MPI, Chemnitz 2005.
`default_nettype none

module toggle_barrier #(
    parameter N = 60,     // 1 or more
    parameter FILTER = 1, // 1 to 256 samples
    parameter SYNC = 2    // synchroniser stages: 2 or 3, or 0 for wires of the same clock
) (
    input  wire         clk_i,   // 25.175 MHz on the ALTERA UP1 board
    input  wire         rst_i,   // synchronous; tie to 0 where power-on is enough
`ifdef FORMAL
    output wire [N-1:0] seen_o,  // the machine's inputs, for the contracts
`endif
    input  wire [N-1:0] node_i,  // asynchronous wires from the nodes
    output wire [N-1:0] node_o   // wires to the nodes
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1) begin : n_guard
            N_must_be_1_or_more refused ();
        end
        if (FILTER < 1 || FILTER > 256) begin : filter_guard
            FILTER_must_be_1_to_256 refused ();
        end
        if (SYNC != 0 && SYNC != 2 && SYNC != 3) begin : sync_guard
            SYNC_must_be_0_2_or_3 refused ();
        end
    endgenerate

    wire [N-1:0] sampled;
    wire [N-1:0] arrived;
    wire         level;

    synchroniser #(.N(N), .STAGES(SYNC)) sync (
        .clk_i   (clk_i),
        .rst_i   (rst_i),
        .level_i (node_i),
        .level_o (sampled)
    );

    level_filter #(.N(N), .SAMPLES(FILTER)) filter (
        .clk_i   (clk_i),
        .rst_i   (rst_i),
        .level_i (sampled),
        .level_o (arrived)
    );

    toggle_machine #(.N(N)) machine (
        .clk_i   (clk_i),
        .rst_i   (rst_i),
        .level_i (arrived),
        .level_o (level)
    );

    assign node_o = {N{level}};
`ifdef FORMAL
    assign seen_o = arrived;
`endif
endmodule

`default_nettype wire
