-- Synchroniser of two or three flip-flops per wire, equivalent to synchroniser.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;

entity synchroniser is
  generic (
    N      : positive := 60;
    STAGES : natural range 0 to 3 := 2  -- 0, 2 or 3
  );
  port (
    clk_i   : in  std_logic;
    rst_i   : in  std_logic;
    level_i : in  std_logic_vector(N - 1 downto 0);
    level_o : out std_logic_vector(N - 1 downto 0)
  );
end entity;

architecture rtl of synchroniser is
  signal stage1_q : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal stage2_q : std_logic_vector(N - 1 downto 0) := (others => '0');
  signal stage3_q : std_logic_vector(N - 1 downto 0) := (others => '0');
begin
  assert STAGES /= 1 report "STAGES must be 0, 2 or 3" severity failure;

  process (clk_i)
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' then
        stage1_q <= (others => '0');
        stage2_q <= (others => '0');
        stage3_q <= (others => '0');
      else
        stage1_q <= level_i;
        stage2_q <= stage1_q;
        stage3_q <= stage2_q;
      end if;
    end if;
  end process;

  none : if STAGES = 0 generate
    level_o <= level_i;
  end generate;

  second : if STAGES = 2 generate
    level_o <= stage2_q;
  end generate;

  third : if STAGES = 3 generate
    level_o <= stage3_q;
  end generate;
end architecture;
