-- Eureka line of N nodes, equivalent to eureka_line.v, which explains it; `cargo test -p hdl` proves the equivalence.
library ieee;
use ieee.std_logic_1164.all;

entity eureka_line is
  generic (
    N      : positive := 60;
    FILTER : positive range 1 to 256 := 1;  -- the number of samples that must agree
    SYNC   : natural range 0 to 3 := 2      -- synchroniser stages: 2 or 3, or 0 for wires of the same clock
  );
  port (
    clk_i     : in  std_logic;
    rst_i     : in  std_logic;                         -- synchronous; tie to '0' where power-on is enough
    release_i : in  std_logic;                         -- the level of the barrier, in this clock domain
    node_i    : in  std_logic_vector(N - 1 downto 0);  -- asynchronous wires from the nodes
    found_o   : out std_logic;                         -- to all nodes
    first_o   : out std_logic_vector(N - 1 downto 0)   -- to each node: it was the first
  );
end entity;

-- The submodules are components that configurations bind by name, as in toggle_barrier.vhd.
architecture rtl of eureka_line is
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

  component eureka_machine
    generic (N : positive);
    port (
      clk_i     : in  std_logic;
      rst_i     : in  std_logic;
      release_i : in  std_logic;
      level_i   : in  std_logic_vector(N - 1 downto 0);
      found_o   : out std_logic;
      first_o   : out std_logic_vector(N - 1 downto 0)
    );
  end component;

  for all : synchroniser use entity work.synchroniser(rtl);
  for all : level_filter use entity work.level_filter(rtl);
  for all : eureka_machine use entity work.eureka_machine(rtl);

  signal sampled : std_logic_vector(N - 1 downto 0);
  signal says    : std_logic_vector(N - 1 downto 0);
begin
  crossing : synchroniser
    generic map (N => N, STAGES => SYNC)
    port map (clk_i => clk_i, rst_i => rst_i, level_i => node_i, level_o => sampled);

  noise : level_filter
    generic map (N => N, SAMPLES => FILTER)
    port map (clk_i => clk_i, rst_i => rst_i, level_i => sampled, level_o => says);

  machine : eureka_machine
    generic map (N => N)
    port map (clk_i => clk_i, rst_i => rst_i, release_i => release_i, level_i => says,
              found_o => found_o, first_o => first_o);
end architecture;
