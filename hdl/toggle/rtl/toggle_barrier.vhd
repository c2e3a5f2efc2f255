-- Toggle barrier of N nodes, equivalent to toggle_barrier.v, which explains it; `cargo test -p hdl` proves the equivalence.
library ieee;
use ieee.std_logic_1164.all;

entity toggle_barrier is
  generic (
    N      : positive := 60;
    FILTER : positive range 1 to 256 := 1;  -- the number of samples that must agree
    SYNC   : natural range 0 to 3 := 2      -- synchroniser stages: 2 or 3, or 0 for wires of the same clock
  );
  port (
    clk_i  : in  std_logic;                         -- 25.175 MHz on the ALTERA UP1 board
    rst_i  : in  std_logic;                         -- synchronous; tie to '0' where power-on is enough
    node_i : in  std_logic_vector(N - 1 downto 0);  -- asynchronous wires from the nodes
    node_o : out std_logic_vector(N - 1 downto 0)   -- wires to the nodes, all with the same level
  );
end entity;

-- Some old tools do not support direct instantiation of entities, so the submodules are declared as components;
-- configurations bind them by name, because otherwise `ghdl --synth` 2.0.0 leaves a component with a generic unbound.
architecture rtl of toggle_barrier is
  component synchroniser
    generic (N : positive; STAGES : natural);
    port (
      clk_i   : in  std_logic;
      rst_i   : in  std_logic;
      level_i : in  std_logic_vector(N - 1 downto 0);
      level_o : out std_logic_vector(N - 1 downto 0)
    );
  end component;

  component level_filter
    generic (N : positive; SAMPLES : positive);
    port (
      clk_i   : in  std_logic;
      rst_i   : in  std_logic;
      level_i : in  std_logic_vector(N - 1 downto 0);
      level_o : out std_logic_vector(N - 1 downto 0)
    );
  end component;

  component toggle_machine
    generic (N : positive);
    port (
      clk_i   : in  std_logic;
      rst_i   : in  std_logic;
      level_i : in  std_logic_vector(N - 1 downto 0);
      level_o : out std_logic
    );
  end component;

  for all : synchroniser use entity work.synchroniser(rtl);
  for all : level_filter use entity work.level_filter(rtl);
  for all : toggle_machine use entity work.toggle_machine(rtl);

  signal sampled : std_logic_vector(N - 1 downto 0);
  signal arrived : std_logic_vector(N - 1 downto 0);
  signal level   : std_logic;
begin
  crossing : synchroniser
    generic map (N => N, STAGES => SYNC)
    port map (clk_i => clk_i, rst_i => rst_i, level_i => node_i, level_o => sampled);

  noise : level_filter
    generic map (N => N, SAMPLES => FILTER)
    port map (clk_i => clk_i, rst_i => rst_i, level_i => sampled, level_o => arrived);

  machine : toggle_machine
    generic map (N => N)
    port map (clk_i => clk_i, rst_i => rst_i, level_i => arrived, level_o => level);

  node_o <= (others => level);
end architecture;
