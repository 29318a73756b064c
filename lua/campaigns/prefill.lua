-- The prefill ladder, rung by rung, on the device that is there.  docs/ladder.md is its record.
-- Every rung says what it expects, and why, before it is measured.  On sim the same rungs have
-- shapes that an interpreter does in a second.
local on_sim = given.device == "sim"
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

-- SMs without a block idle.
local function busy(work, ceiling) return math.min(1, work.blocks / ceiling.sm_count) end

-- Several queries a thread: for 256 multiply-adds 440 issue slots with rows from L1, 370 with rows
-- from shared memory, and two warps a scheduler that wait for half of the time.
local function tile_us(p, work, ceiling)
  local slots = work.params.stages == 0 and 440 or 370
  return {
    us = attention.fma_us(p, ceiling) * slots / 256 / 0.5 / busy(work, ceiling),
    why = ("%d issue slots for 256 multiply-adds, and as long again in waiting"):format(slots),
  }
end

-- Register tiles: 88 % of the issue slots are multiply-adds, and a tenth of the time is waiting.  A
-- tile that the diagonal cuts is computed whole: half a tile more on either side.
local function fma_us(p, work, ceiling)
  local v, cut = work.params, 1
  if p.causal == 1 then cut = 1 + (v.tile_q + v.tile_k) / p.seqlen_k end
  return {
    us = attention.fma_us(p, ceiling) * cut / (0.88 * 0.9) / busy(work, ceiling) + 2,
    why = "88 % of the issue slots are multiply-adds; a tenth is waiting",
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
  if p.dtype == "f32" then rate = rate / 6 end -- three products at half of the rate
  local one = 4 * pairs * p.head_dim / rate + 1
  local waves = blocks / (2 * ceiling.sm_count)
  if p.causal == 0 then waves = math.ceil(waves) end -- causal blocks differ, and fill the gaps
  return {
    us = one * math.max(1, waves) + 2,
    why = "63 % of what mma.sync can do, in whole waves of two blocks an SM",
  }
end

-- wgmma: an SM's tensor cores do 2,048 multiply-adds a clock of 16-bit numbers, 4,096 of 8-bit ones,
-- its exponentials are 16 a clock.  A warpgroup's unit of 64 rows x tile_k keys takes its products'
-- time and what of the exponentials the other warpgroups do not hide: 0.62 of them, 1.1 where they
-- take as long as the products and two warpgroups share an SM (measured: docs/ladder.md).  A work
-- item costs 2,250 clocks besides, 4,000 with three warpgroups in step.
local function wgmma_us(p, work, ceiling)
  local v = work.params
  local clock = ceiling.fma_gflops * 1e3 / (256 * ceiling.sm_count) -- clocks a microsecond
  local groups, each = v.tile_q // 64, v.per_sm
  local products = 64 * v.tile_k * 2 * p.head_dim / (p.dtype == "e4m3" and 4096 or 2048)
  local weights = 64 * v.tile_k / 16
  local shown = (groups * each < 3 and weights >= products) and 1.1 or 0.62
  local tiles = (p.seqlen_q + v.tile_q - 1) // v.tile_q
  local units = 0 -- of a head
  for t = 1, tiles do
    local keys = p.causal == 1 and math.min(p.seqlen_k, t * v.tile_q) or p.seqlen_k
    units = units + groups * ((keys + v.tile_k - 1) // v.tile_k)
  end
  local overhead = tiles * (groups == 3 and 4000 or groups == 2 and 2250 or 1000)
  local heads = p.batch * p.heads_q / ceiling.sm_count -- an SM's
  if p.causal == 0 then heads = math.ceil(heads * tiles / each) * each / tiles end
  return {
    us = heads * (units * (products + shown * weights) + overhead) / clock + 3,
    why = "products, the exponentials that show, and what an item costs, in whole waves",
  }
end

local function square(d, causal, dtype)
  local list = {}
  if on_sim then
    local shape = "b=1,hq=2,hkv=1,sq=160,sk=224,d=%d,causal=%d,dtype=%s"
    return { shape:format(d, causal, dtype or "bf16") }
  end
  for _, s in ipairs { 512, 2048, 8192 } do
    local h = 2048 // d
    list[#list + 1] = ("b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=%d,dtype=%s"):format(
      16384 // s, h, h, s, s, d, causal, dtype or "bf16")
  end
  return list
end

local function fp32_rung(name, template, predict, params, doc)
  local problems = {}
  for _, d in ipairs { 64, 128 } do
    for causal = 0, 1 do
      local shape = "b=4,hq=%d,hkv=%d,sq=4096,sk=4096,d=%d,causal=%d,dtype=f32"
      if on_sim then shape = "b=1,hq=%d,hkv=%d,sq=80,sk=144,d=%d,causal=%d,dtype=f32" end
      local heads = on_sim and 1 or 2048 // d
      problems[#problems + 1] = shape:format(heads, heads, d, causal)
    end
  end
  return {
    name = name,
    doc = doc,
    template = template,
    problems = problems,
    params = params,
    limit = 300,
    predict = predict,
  }
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

local function wgmma_rung(name, d, causal, dtype, params, doc)
  return {
    name = "wgmma: " .. name,
    doc = doc,
    template = "prefill_wgmma",
    problems = square(d, causal, dtype),
    params = params,
    limit = 300,
    predict = wgmma_us,
  }
end

return {
  rungs = {
    {
      name = "R0: one query a thread",
      doc = "fp32, no tensor cores, no shared memory",
      template = "prefill_thread",
      problems = { on_sim and "b=1,hq=2,hkv=2,sq=80,sk=144,d=128"
        or "b=1,hq=16,hkv=16,sq=2048,sk=2048,d=128" },
      params = { vec = { 4 }, slice = { 2 }, block = { 128 } },
      limit = 900,
      predict = thread_us,
    },
    fp32_rung("R1: several queries a thread", "prefill_tile", tile_us,
      { stages = { 0 }, queries = { 2, 4 }, unroll = { 1, 2 } }, "rows from L1, 16 bytes at once"),
    fp32_rung("R2: tiles in shared memory", "prefill_tile", tile_us,
      { stages = { 2, 3 }, queries = { 2, 4 }, unroll = { 2 } }, "the same, rows by cp.async"),
    fp32_rung("R3: register tiles", "prefill_fma", fma_us,
      { tile_q = { 128 }, tile_k = { 32, 64 }, unroll = { 8, 16 } }, "S and O like matrix products"),
    fp32_rung("split tf32", "prefill_mma", mma_us,
      { tile_q = { 64, 128 }, tile_k = { 16, 32 }, warps = { 4 } }, "three products of tf32 for one"),
    mma_rung(128, 0, "R5/R6: 16 or 32 rows a warp, 32 or 64 keys, one or two stages"),
    mma_rung(128, 1, "the same under a causal mask"),
    mma_rung(64, 0, "Q stays in registers"),
    mma_rung(64, 1, "the same under a causal mask"),
    wgmma_rung("head_dim 128", 128, 0, "bf16", { tile_q = { 128 }, tile_k = { 128, 144 }, per_sm = { 1 } },
      "RH: tensor copies, two warpgroups in turn, S of a tile with P V of the one before"),
    wgmma_rung("head_dim 128, causal", 128, 1, "bf16", { tile_q = { 128 }, tile_k = { 96, 128 }, per_sm = { 1 } },
      "RH under a causal mask: longest items first, from a counter"),
    wgmma_rung("head_dim 64, causal", 64, 1, "bf16",
      { tile_q = { 64, 192 }, tile_k = { 64, 128 }, per_sm = { 1, 3 } },
      "three warpgroups in step, or each with items of its own"),
    wgmma_rung("e4m3, head_dim 128", 128, 0, "e4m3",
      { tile_q = { 128, 192 }, tile_k = { 96, 224 }, per_sm = { 1 } },
      "V transposed in shared memory by warps that would idle"),
  },
}
