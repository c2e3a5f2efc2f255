-- The two-state machine of the toggle barrier, equivalent to toggle_machine.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;
use work.barrier_logic.all;

entity toggle_machine is
  generic (N : positive := 60);
  port (
    clk_i   : in  std_logic;
    rst_i   : in  std_logic;
    level_i : in  std_logic_vector(N - 1 downto 0);
    level_o : out std_logic
  );
end entity;

architecture rtl of toggle_machine is
  signal level_q : std_logic := '0';
begin
  process (clk_i)
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' then
        level_q <= '0';
      elsif level_q = '0' then
        level_q <= all_high(level_i);
      else
        level_q <= any_high(level_i);
      end if;
    end if;
  end process;

  level_o <= level_q;
end architecture;
