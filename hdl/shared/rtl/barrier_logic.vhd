-- Reductions for VHDL-93, which has no operator for them; the Verilog twin writes &x and |x.
--
-- MAX+PLUS II and Quartus II 9.0 accept a loop, as does GHDL. Do not compare with an aggregate instead:
-- `ghdl --synth` 2.0.0 writes a comparison with (others => '1') as a comparison with a Verilog string.
library ieee;
use ieee.std_logic_1164.all;

package barrier_logic is
  function all_high (levels : std_logic_vector) return std_logic;
  function any_high (levels : std_logic_vector) return std_logic;
  -- The lowest bit that is set, as a one-hot vector; the Verilog writes x & (~x + 1).
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
    -- The result of "and" has the indices 1 to n, of which 1 is the highest bit.
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
