-- State of the eureka line, equivalent to eureka_machine.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;
use work.barrier_logic.all;

entity eureka_machine is
  generic (N : positive := 60);
  port (
    clk_i     : in  std_logic;
    rst_i     : in  std_logic;
    release_i : in  std_logic;
    level_i   : in  std_logic_vector(N - 1 downto 0);
    found_o   : out std_logic;
    first_o   : out std_logic_vector(N - 1 downto 0)
  );
end entity;

architecture rtl of eureka_machine is
  signal found_q   : std_logic := '0';
  signal first_q   : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal release_q : std_logic := '0';
begin
  process (clk_i)
  begin
    if rising_edge(clk_i) then
      release_q <= release_i and not rst_i;
      if rst_i = '1' or release_i /= release_q then
        found_q <= '0';
        first_q <= (others => '0');
      elsif found_q = '0' then
        found_q <= any_high(level_i);
        first_q <= lowest(level_i);
      end if;
    end if;
  end process;

  found_o <= found_q;
  first_o <= first_q;
end architecture;
