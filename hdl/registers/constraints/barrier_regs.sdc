# Quartus, Radiant and Gowin: the crossings of the barrier; see barrier_regs.xdc for the reasons.
# Quartus additionally needs, in the settings file, for its metastability report:
#   set_instance_assignment -name SYNCHRONIZER_IDENTIFICATION FORCED -to *sync*|stage1_q[*]

set_false_path -to [get_registers -nowarn {*sync*|stage1_q[*]}]
