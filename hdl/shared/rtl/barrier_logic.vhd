-- Reduction functions for VHDL-93, which has no such operators; the Verilog uses &x and |x instead.
--
-- The functions are loops, which MAX+PLUS II, Quartus II 9.0 and GHDL accept. Do not replace them by comparisons with an aggregate:
-- `ghdl --synth` 2.0.0 writes a comparison with (others => '1') as a comparison with a Verilog string.
library ieee;
use ieee.std_logic_1164.all;

package barrier_logic is
  function all_high (levels : std_logic_vector) return std_logic;
  function any_high (levels : std_logic_vector) return std_logic;
  -- Returns the lowest bit that is set, as a one-hot vector; the Verilog uses x & (~x + 1) instead.
  function lowest (levels : std_logic_vector) return std_logic_vector;
end package;

package body barrier_logic is
  function all_high (levels : std_logic_vector) return std_logic is
    variable result : std_logic := '1';
  begin
    for n in levels'range loop
      result := result and levels(n);
    end loop;
    return result;
  end function;

  function any_high (levels : std_logic_vector) return std_logic is
    variable result : std_logic := '0';
  begin
    for n in levels'range loop
      result := result or levels(n);
    end loop;
    return result;
  end function;

  function lowest (levels : std_logic_vector) return std_logic_vector is
    -- The result of "and" has the indices 1 to n; index 1 is its highest bit.
    alias bits      : std_logic_vector(levels'length - 1 downto 0) is levels;
    variable result : std_logic_vector(levels'length - 1 downto 0);
    variable found  : std_logic := '0';
  begin
    for n in 0 to bits'high loop
      result(n) := bits(n) and not found;
      found     := found or bits(n);
    end loop;
    return result;
  end function;
end package body;
