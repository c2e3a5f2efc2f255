-- The register block with an APB3 or APB4 bus, equivalent to barrier_apb.v.
library ieee;
use ieee.std_logic_1164.all;

-- generated from hdl/registers/rtl/apb_front.vhd: unit
entity barrier_apb is
  generic (
    ADDRESS  : positive range 13 to 19 := 19;
    N        : positive := 4;
    G        : positive := 1;
    SYNC     : natural := 2;
    STRIDE   : positive := 6;
    STAMPS   : natural := 1;
    PULSE    : natural := 1;
    CLOCK_HZ : natural := 0
  );
  port (
    clk_i        : in  std_logic;
    rst_i        : in  std_logic;
    psel_i       : in  std_logic;
    penable_i    : in  std_logic;
    pwrite_i     : in  std_logic;
    paddr_i      : in  std_logic_vector(ADDRESS - 1 downto 0);
    pwdata_i     : in  std_logic_vector(31 downto 0);
    pstrb_i      : in  std_logic_vector(3 downto 0);
    prdata_o     : out std_logic_vector(31 downto 0);
    pready_o     : out std_logic;
    pslverr_o    : out std_logic;
    node_i       : in  std_logic_vector(G * N - 1 downto 0);
    enter_i      : in  std_logic_vector(G * N - 1 downto 0);
    level_o      : out std_logic_vector(G - 1 downto 0);
    release_o    : out std_logic_vector(G * N - 1 downto 0);
    wake_o       : out std_logic_vector(N - 1 downto 0);
    irq_o        : out std_logic;
    start_o      : out std_logic;
    start_time_o : out std_logic_vector(31 downto 0)
  );
end entity;

-- Components and configurations: see toggle_barrier.vhd.
architecture rtl of barrier_apb is
  component apb_front
    generic (ADDRESS : positive);
    port (
      psel_i    : in  std_logic;
      penable_i : in  std_logic;
      pwrite_i  : in  std_logic;
      paddr_i   : in  std_logic_vector(ADDRESS - 1 downto 0);
      pwdata_i  : in  std_logic_vector(31 downto 0);
      pstrb_i   : in  std_logic_vector(3 downto 0);
      prdata_o  : out std_logic_vector(31 downto 0);
      pready_o  : out std_logic;
      pslverr_o : out std_logic;
      raddr_o   : out std_logic_vector(18 downto 0);
      rdata_i   : in  std_logic_vector(31 downto 0);
      rerror_i  : in  std_logic;
      write_o   : out std_logic;
      waddr_o   : out std_logic_vector(18 downto 0);
      wdata_o   : out std_logic_vector(31 downto 0);
      wstrb_o   : out std_logic_vector(3 downto 0);
      werror_i  : in  std_logic
    );
  end component;

  component barrier_regs
    generic (
      N        : positive;
      G        : positive;
      SYNC     : natural;
      STRIDE   : positive;
      STAMPS   : natural;
      PULSE    : natural;
      CLOCK_HZ : natural
    );
    port (
      clk_i        : in  std_logic;
      rst_i        : in  std_logic;
      raddr_i      : in  std_logic_vector(18 downto 0);
      rdata_o      : out std_logic_vector(31 downto 0);
      rerror_o     : out std_logic;
      write_i      : in  std_logic;
      waddr_i      : in  std_logic_vector(18 downto 0);
      wdata_i      : in  std_logic_vector(31 downto 0);
      wstrb_i      : in  std_logic_vector(3 downto 0);
      werror_o     : out std_logic;
      node_i       : in  std_logic_vector(G * N - 1 downto 0);
      enter_i      : in  std_logic_vector(G * N - 1 downto 0);
      level_o      : out std_logic_vector(G - 1 downto 0);
      release_o    : out std_logic_vector(G * N - 1 downto 0);
      wake_o       : out std_logic_vector(N - 1 downto 0);
      irq_o        : out std_logic;
      start_o      : out std_logic;
      start_time_o : out std_logic_vector(31 downto 0)
    );
  end component;

  for all : apb_front use entity work.apb_front(rtl);
  for all : barrier_regs use entity work.barrier_regs(rtl);

  signal raddr, waddr          : std_logic_vector(18 downto 0);
  signal rdata, wdata          : std_logic_vector(31 downto 0);
  signal wstrb                 : std_logic_vector(3 downto 0);
  signal rerror, write, werror : std_logic;
begin
  front : apb_front
    generic map (ADDRESS => ADDRESS)
    port map (
      psel_i    => psel_i,
      penable_i => penable_i,
      pwrite_i  => pwrite_i,
      paddr_i   => paddr_i,
      pwdata_i  => pwdata_i,
      pstrb_i   => pstrb_i,
      prdata_o  => prdata_o,
      pready_o  => pready_o,
      pslverr_o => pslverr_o,
      raddr_o   => raddr,
      rdata_i   => rdata,
      rerror_i  => rerror,
      write_o   => write,
      waddr_o   => waddr,
      wdata_o   => wdata,
      wstrb_o   => wstrb,
      werror_i  => werror
    );

  regs : barrier_regs
    generic map (N => N, G => G, SYNC => SYNC, STRIDE => STRIDE, STAMPS => STAMPS, PULSE => PULSE, CLOCK_HZ => CLOCK_HZ)
    port map (
      clk_i        => clk_i,
      rst_i        => rst_i,
      raddr_i      => raddr,
      rdata_o      => rdata,
      rerror_o     => rerror,
      write_i      => write,
      waddr_i      => waddr,
      wdata_i      => wdata,
      wstrb_i      => wstrb,
      werror_o     => werror,
      node_i       => node_i,
      enter_i      => enter_i,
      level_o      => level_o,
      release_o    => release_o,
      wake_o       => wake_o,
      irq_o        => irq_o,
      start_o      => start_o,
      start_time_o => start_time_o
    );
end architecture;
-- end of the generated text
