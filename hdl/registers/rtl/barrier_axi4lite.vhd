-- The register block with an AXI4-Lite bus, equivalent to barrier_axi4lite.v.
library ieee;
use ieee.std_logic_1164.all;

-- generated from hdl/registers/rtl/axi4lite_front.vhd: unit
entity barrier_axi4lite is
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
    awvalid_i    : in  std_logic;
    awready_o    : out std_logic;
    awaddr_i     : in  std_logic_vector(ADDRESS - 1 downto 0);
    wvalid_i     : in  std_logic;
    wready_o     : out std_logic;
    wdata_i      : in  std_logic_vector(31 downto 0);
    wstrb_i      : in  std_logic_vector(3 downto 0);
    bvalid_o     : out std_logic;
    bready_i     : in  std_logic;
    bresp_o      : out std_logic_vector(1 downto 0);
    arvalid_i    : in  std_logic;
    arready_o    : out std_logic;
    araddr_i     : in  std_logic_vector(ADDRESS - 1 downto 0);
    rvalid_o     : out std_logic;
    rready_i     : in  std_logic;
    rdata_o      : out std_logic_vector(31 downto 0);
    rresp_o      : out std_logic_vector(1 downto 0);
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
architecture rtl of barrier_axi4lite is
  component axi4lite_front
    generic (ADDRESS : positive);
    port (
      clk_i     : in  std_logic;
      rst_i     : in  std_logic;
      awvalid_i : in  std_logic;
      awready_o : out std_logic;
      awaddr_i  : in  std_logic_vector(ADDRESS - 1 downto 0);
      wvalid_i  : in  std_logic;
      wready_o  : out std_logic;
      wdata_i   : in  std_logic_vector(31 downto 0);
      wstrb_i   : in  std_logic_vector(3 downto 0);
      bvalid_o  : out std_logic;
      bready_i  : in  std_logic;
      bresp_o   : out std_logic_vector(1 downto 0);
      arvalid_i : in  std_logic;
      arready_o : out std_logic;
      araddr_i  : in  std_logic_vector(ADDRESS - 1 downto 0);
      rvalid_o  : out std_logic;
      rready_i  : in  std_logic;
      rdata_o   : out std_logic_vector(31 downto 0);
      rresp_o   : out std_logic_vector(1 downto 0);
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

  for all : axi4lite_front use entity work.axi4lite_front(rtl);
  for all : barrier_regs use entity work.barrier_regs(rtl);

  signal raddr, waddr          : std_logic_vector(18 downto 0);
  signal rdata, wdata          : std_logic_vector(31 downto 0);
  signal wstrb                 : std_logic_vector(3 downto 0);
  signal rerror, write, werror : std_logic;
begin
  front : axi4lite_front
    generic map (ADDRESS => ADDRESS)
    port map (
      clk_i     => clk_i,
      rst_i     => rst_i,
      awvalid_i => awvalid_i,
      awready_o => awready_o,
      awaddr_i  => awaddr_i,
      wvalid_i  => wvalid_i,
      wready_o  => wready_o,
      wdata_i   => wdata_i,
      wstrb_i   => wstrb_i,
      bvalid_o  => bvalid_o,
      bready_i  => bready_i,
      bresp_o   => bresp_o,
      arvalid_i => arvalid_i,
      arready_o => arready_o,
      araddr_i  => araddr_i,
      rvalid_o  => rvalid_o,
      rready_i  => rready_i,
      rdata_o   => rdata_o,
      rresp_o   => rresp_o,
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
