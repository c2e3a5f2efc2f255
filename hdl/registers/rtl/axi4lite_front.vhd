-- AXI4-Lite front (bus adapter) of the register block, equivalent to axi4lite_front.v, which explains it.
library ieee;
use ieee.std_logic_1164.all;

entity axi4lite_front is
  generic (ADDRESS : positive range 13 to 19 := 19);
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
end entity;

architecture rtl of axi4lite_front is
  signal bvalid_q, berror_q, rvalid_q, rerror_q : std_logic := '0';
  signal rdata_q                                : std_logic_vector(31 downto 0) := (others => '0');
  signal writes, reads                          : std_logic;
begin
  writes <= awvalid_i and wvalid_i and (not bvalid_q or bready_i) and not rst_i;
  reads  <= arvalid_i and (not rvalid_q or rready_i) and not rst_i;

  process (clk_i)
  begin
    if rising_edge(clk_i) then
      if rst_i = '1' then
        bvalid_q <= '0';
        rvalid_q <= '0';
      else
        bvalid_q <= writes or (bvalid_q and not bready_i);
        rvalid_q <= reads or (rvalid_q and not rready_i);
      end if;
      if writes = '1' then
        berror_q <= werror_i;
      end if;
      if reads = '1' then
        rerror_q <= rerror_i;
        rdata_q  <= rdata_i;
      end if;
    end if;
  end process;

  awready_o <= writes;
  wready_o  <= writes;
  bvalid_o  <= bvalid_q;
  bresp_o   <= berror_q & '0';
  arready_o <= reads;
  rvalid_o  <= rvalid_q;
  rresp_o   <= rerror_q & '0';
  rdata_o   <= rdata_q;

  write_o <= writes;
  wdata_o <= wdata_i;
  wstrb_o <= wstrb_i;

  -- The bus has fewer address bits than the block; the others are 0.
  process (awaddr_i, araddr_i)
  begin
    waddr_o <= (others => '0');
    raddr_o <= (others => '0');
    waddr_o(ADDRESS - 1 downto 0) <= awaddr_i;
    raddr_o(ADDRESS - 1 downto 0) <= araddr_i;
  end process;
end architecture;
