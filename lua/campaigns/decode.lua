-- The decode ladder, rung by rung, on the device that is there.  docs/ladder.md is its record.
-- Every rung says what it expects, and why, before it is measured.  On sim the same rungs have
-- shapes that an interpreter does in a second.
local on_sim = given.device == "sim"
local attention = require("ptxsmith.attention")

-- What a launch costs beside the bytes: launch and ramp are in the read ceiling of the same size
-- already; the divisions that find the work item, the first loads' start and the merge of the warps
-- come to 1 us, and telling the last block and its combine, three trips to the L2, to 2 us.
local start_us, combine_us = 1, 2

-- Blocks with much shared memory: an SM holds `fit` of them, and a round that is not full takes as
-- long as a full one.
local function rounds_us(p, work, ceiling, keys_bytes)
  local v = work.params
  local ring = v.warps * v.stages * keys_bytes
  local places = ceiling.sm_count * math.max(1, math.min(4, 230000 // (ring + 6000)))
  local blocks = p.batch * p.heads_kv * v.chunks
  local rounds = math.ceil(blocks / places)
  local idle = rounds * places / blocks
  return {
    us = attention.read_us(p, ceiling) * math.max(1, idle) + rounds * start_us
      + (v.chunks > 1 and combine_us or 0),
    why = "the read ceiling, in whole rounds of blocks, and the combine of the last one",
  }
end

local function mma_us(p, work, ceiling)
  return rounds_us(p, work, ceiling, work.params.tile_k * 4 * p.head_dim)
end

-- Equal pieces of all keys, one for each SM: no round is ever half full.
local function span_us(p, work, ceiling)
  local share = math.min(1, work.params.chunks / ceiling.sm_count)
  return {
    us = math.max(attention.read_us(p, ceiling), attention.read_us(p, ceiling) * 0.97 / share)
      + start_us + combine_us,
    why = "the read ceiling, one start and one combine",
  }
end

local function fma_us(p, work, ceiling)
  return rounds_us(p, work, ceiling, work.params.unroll * 2 * 512 * (p.head_dim // 128))
end

-- Bytes under way over the latency (lua/campaigns/foundation.lua), and two launches.
local function splitk_us(p, work, ceiling)
  local v = work.params
  local per_block = 32 * v.warps * v.unroll * 2 * 16 / (0.7 * 1e3)
  local blocks = p.batch * p.heads_kv * v.chunks
  return {
    us = attention.bound_with_blocks_us(p, ceiling, blocks, per_block) + 8,
    why = "two launches, a ramp each, and a merge that nothing hides",
  }
end

-- The table of the peers' figures: one request, groups, batches.
local shapes = {
  "b=1,hq=8,hkv=8,sk=16384", "b=1,hq=32,hkv=8,sk=16384", "b=1,hq=64,hkv=8,sk=32768",
  "b=8,hq=32,hkv=8,sk=8192", "b=1,hq=32,hkv=8,sk=131072", "b=16,hq=64,hkv=8,sk=8192",
  "b=128,hq=32,hkv=8,sk=1024", "b=16,hq=32,hkv=8,sk=16384", "b=64,hq=32,hkv=8,sk=4096",
  "b=1,hq=32,hkv=32,sk=16384", "b=16,hq=32,hkv=32,sk=4096",
}

if on_sim then shapes = { "b=1,hq=2,hkv=2,sk=1024", "b=2,hq=8,hkv=2,sk=640" } end

local one_head = on_sim and "b=1,hq=2,hkv=2,sq=1,sk=1024,d=128"
  or "b=1,hq=8,hkv=8,sq=1,sk=16384,d=128"

-- Chunks fill an H200; on sim there are fewer keys to split.
local function chunks(list) return on_sim and { 1, 3 } or list end

local function table_of(dtype)
  local list = {}
  for i, shape in ipairs(shapes) do list[i] = shape .. ",sq=1,d=128,dtype=" .. dtype end
  return list
end

return {
  rungs = {
    {
      name = "R1: loads to registers, a second launch combines",
      doc = "what the foundation left: bf16, one request",
      template = "decode_splitk",
      problems = { one_head .. ",dtype=bf16" },
      params = { chunks = chunks { 16, 32, 64 }, warps = { 4 }, unroll = { 4 }, tile_q = { 1 } },
      predict = splitk_us,
    },
    {
      name = "R2: tensor cores, copies ahead, a second launch combines",
      doc = "what the second launch costs, beside R3",
      template = "decode_mma",
      problems = { one_head .. ",dtype=bf16" },
      params = { chunks = chunks { 16, 33 }, warps = { 4 }, stages = { 3 }, tile_k = { 16, 32 },
        fused = { false } },
      predict = mma_us,
    },
    {
      name = "R3: the last block combines",
      doc = "bf16, the whole table",
      template = "decode_mma",
      problems = table_of("bf16"),
      params = { chunks = chunks { 1, 2, 4, 16, 33 }, warps = { 4, 8 }, stages = { 3 },
        tile_k = { 16, 32 } },
      where = function(v, p)
        local blocks = p.batch * p.heads_kv * v.chunks
        return v.warps * v.tile_k <= 128 and (on_sim or blocks >= 120 and blocks <= 1100)
      end,
      predict = mma_us,
    },
    {
      name = "R3o: equal spans of all keys, other warps merge",
      doc = "bf16, the whole table",
      template = "decode_span",
      problems = table_of("bf16"),
      params = { chunks = on_sim and { 6, 8 } or { 128, 132 }, warps = { 4, 8 }, stages = { 3, 5 },
        tile_q = { 4, 8 } },
      where = function(v, p)
        local fits = v.warps * v.stages <= 24 and (v.warps == 4 or v.tile_q == 4)
        return fits and p.heads_q // p.heads_kv <= v.tile_q
      end,
      predict = span_us,
    },
    {
      name = "R4: fp32 by multiply-adds, copies ahead",
      doc = "134 MB of the campaign's own case",
      template = "decode_fma",
      problems = { one_head .. ",dtype=f32" },
      params = { chunks = chunks { 16, 33 }, warps = { 4, 8 }, stages = { 6, 12 },
        unroll = { 1, 2 }, tile_q = { 1 } },
      where = function(v) return v.warps * v.stages * v.unroll <= 96 end,
      predict = fma_us,
    },
  },
}
