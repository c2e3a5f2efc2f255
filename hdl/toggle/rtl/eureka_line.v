// Eureka line of N nodes, an addition to a barrier: a global flag that any node may raise.
//
// A node raises the flag with its wire. One edge after the first high wire has passed the filter, the line to all nodes is high, and so is the
// wire to the first node alone (the lowest-numbered one if several rose at the same edge). Both stay high until the barrier releases,
// which requires that all nodes have entered, so no node misses the flag; one edge later both are low. A node lowers its wire before it
// enters. FILTER successive samples of a wire must agree; the barrier's filter must not be shorter.
// In the Rust model: eureka::EurekaLine.
`default_nettype none

module eureka_line #(
    parameter N = 60,     // 1 or more
    parameter FILTER = 1, // 1 to 256 samples
    parameter SYNC = 2    // synchroniser stages: 2 or 3, or 0 for wires of the same clock
) (
    input  wire         clk_i,
    input  wire         rst_i,      // synchronous; tie to 0 where power-on is enough
    input  wire         release_i,  // the level of the barrier, in this clock domain
`ifdef FORMAL
    output wire [N-1:0] seen_o,     // the machine's inputs, for the contract
`endif
    input  wire [N-1:0] node_i,     // asynchronous wires from the nodes
    output wire         found_o,    // to all nodes: a node has raised the flag
    output wire [N-1:0] first_o     // to each node: it was the first
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
    wire [N-1:0] says;

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
        .level_o (says)
    );

    eureka_machine #(.N(N)) machine (
        .clk_i     (clk_i),
        .rst_i     (rst_i),
        .release_i (release_i),
        .level_i   (says),
        .found_o   (found_o),
        .first_o   (first_o)
    );
`ifdef FORMAL
    assign seen_o = says;
`endif
endmodule

`default_nettype wire
