-- The prefill ladder, rung by rung, on the device that is there.  docs/ladder.md is its record.
-- Every rung says what it expects, and why, before it is measured.
local attention = require("ptxsmith.attention")

-- One query a thread: registers are filled from L1 at 128 bytes a clock, an element of K and V for
-- every multiply-add, which is a quarter of the rate of multiply-adds; SMs without a block idle.
local function thread_us(p, work, ceiling)
  local queries = (work.params.block or 128) // work.params.slice
  local blocks = p.batch * p.heads_q * ((p.seqlen_q + queries - 1) // queries)
  return {
    us = 4 * attention.fma_us(p, ceiling) / math.min(1, blocks / ceiling.sm_count),
    why = "registers are filled from L1 at 128 bytes a clock",
  }
end

-- mma.sync: a tensor core does 16 multiply-adds for one of the fp32 pipe, 62 % of that by mma.sync
-- on Hopper.  Two warps a scheduler reach 63 % of it (the first measurement); an SM has two blocks,
-- and a wave that is not full takes as long as a full one.  A block's first tiles arrive 1 us late,
-- and a tile that the diagonal cuts is computed whole.
local function mma_us(p, work, ceiling)
  local v = work.params
  local tiles = (p.seqlen_q + v.tile_q - 1) // v.tile_q
  local blocks = p.batch * p.heads_q * tiles
  local pairs = v.tile_q * p.seqlen_k
  if p.causal == 1 then -- the mean block: half of the keys, and half a tile cut off on either side
    pairs = v.tile_q * (p.seqlen_k + v.tile_q + v.tile_k) / 2
  end
  local rate = 16 * 0.62 * 0.63 * ceiling.fma_gflops * 1e3 / (2 * ceiling.sm_count) -- of a block
  local one = 4 * pairs * p.head_dim / rate + 1
  local waves = blocks / (2 * ceiling.sm_count)
  if p.causal == 0 then waves = math.ceil(waves) end -- causal blocks differ, and fill the gaps
  return {
    us = one * math.max(1, waves) + 2,
    why = "63 % of what mma.sync can do, in whole waves of two blocks an SM",
  }
end

local function square(d, causal)
  local list = {}
  for _, s in ipairs { 512, 2048, 8192 } do
    local h = 2048 // d
    list[#list + 1] = ("b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=%d,dtype=bf16"):format(
      16384 // s, h, h, s, s, d, causal)
  end
  return list
end

local function mma_rung(d, causal, doc)
  return {
    name = ("mma.sync: head_dim %d%s"):format(d, causal == 1 and ", causal" or ""),
    doc = doc,
    template = "prefill_mma",
    problems = square(d, causal),
    params = { tile_q = { 64, 128 }, tile_k = { 32, 64 }, warps = { 4 }, stages = { 1, 2 } },
    limit = 300,
    predict = mma_us,
  }
end

return {
  rungs = {
    {
      name = "R0: one query a thread",
      doc = "fp32, no tensor cores, no shared memory",
      template = "prefill_thread",
      problems = { "b=1,hq=16,hkv=16,sq=2048,sk=2048,d=128" },
      params = { vec = { 4 }, slice = { 2 }, block = { 128 } },
      limit = 900,
      predict = thread_us,
    },
    mma_rung(128, 0, "R5/R6: 16 or 32 rows a warp, 32 or 64 keys, one or two stages"),
    mma_rung(128, 1, "the same under a causal mask"),
    mma_rung(64, 0, "Q stays in registers"),
    mma_rung(64, 1, "the same under a causal mask"),
  },
}
