// Arbiter of the one serial receiver: grants the lowest-numbered node with a high select, until its select falls.
//
// A node whose clock does not change for 2^LEASE_BITS edges loses the receiver and must lower its select before its next request,
// so a node that dies during a session does not block programming. In the Rust model: channels::Serial.
`default_nettype none

module channel_arbiter #(
    parameter N = 60,
    parameter LEASE_BITS = 24
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire [N-1:0] select_i,  // asynchronous
    input  wire         held_i,    // select of the node that has the receiver, filtered
    input  wire         moves_i,   // that node's clock has changed, filtered
    output wire [N-1:0] grant_o    // one-hot, or 0
);
    // An illegal parameter instantiates a missing module, so no tool elaborates the design.
    generate
        if (N < 1) begin : n_guard
            N_must_be_1_or_more refused ();
        end
        if (LEASE_BITS < 4 || LEASE_BITS > 31) begin : lease_bits_guard
            LEASE_BITS_must_be_4_to_31 refused ();
        end
    endgenerate

    reg [N-1:0] select1_q = {N{1'b0}};
    reg [N-1:0] select2_q = {N{1'b0}};
    reg [N-1:0] grant_q   = {N{1'b0}};
    reg [N-1:0] blocked_q = {N{1'b0}};
    reg [LEASE_BITS-1:0] age_q = {LEASE_BITS{1'b0}};

    wire         granted = |grant_q;
    wire         expired = granted && (&age_q);
    wire         gone    = !held_i && !(|(select2_q & grant_q));
    wire [N-1:0] asking  = select2_q & ~blocked_q;
    wire [N-1:0] lowest  = asking & (~asking + 1'b1);

    always @(posedge clk_i) begin
        if (rst_i) begin
            select1_q <= {N{1'b0}};
            select2_q <= {N{1'b0}};
            blocked_q <= {N{1'b0}};
        end else begin
            select1_q <= select_i;
            select2_q <= select1_q;
            blocked_q <= (blocked_q & select2_q) | (grant_q & {N{expired}});
        end
    end

    always @(posedge clk_i) begin
        if (rst_i)
            grant_q <= {N{1'b0}};
        else if (!granted)
            grant_q <= lowest;
        else if (expired || gone)
            grant_q <= {N{1'b0}};
    end

    always @(posedge clk_i) begin
        if (rst_i || !granted || moves_i)
            age_q <= {LEASE_BITS{1'b0}};
        else
            age_q <= age_q + 1'b1;
    end

    assign grant_o = grant_q;
endmodule

`default_nettype wire
