# Vivado: the crossings of the barrier. Source it for the design that instantiates barrier_regs, toggle_barrier or eureka_line.
#
# The only crossing is from the nodes' wires (node_i) to the first synchroniser stage; with SYNC = 0 there is none, and the first
# command then finds no cells, which -quiet permits.
# A wire is one bit of its own, so no skew between wires matters: an arrival is late by a cycle at most.
# Do not declare the nodes' clock and this one as asynchronous groups as well: that would override a bound on the delay.

set_property ASYNC_REG TRUE [get_cells -quiet -hierarchical -filter {NAME =~ *sync*/stage?_q_reg[*]}]
set_property SHREG_EXTRACT NO [get_cells -quiet -hierarchical -filter {NAME =~ *sync*/stage?_q_reg[*]}]

# From pads: any delay.
set_false_path -quiet -to [get_pins -quiet -of_objects [get_cells -quiet -hierarchical -filter {NAME =~ *sync*/stage1_q_reg[*]}] -filter {REF_PIN_NAME == D}]

# From flip-flops of another clock, instead of the line above: at most one period of this clock, here 10 ns.
# set_max_delay -datapath_only 10.0 -from [get_cells SOURCE_FLIP_FLOPS] -to [get_cells -hierarchical -filter {NAME =~ *sync*/stage1_q_reg[*]}]
