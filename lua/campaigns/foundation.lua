-- The first ladder: what wide loads buy a kernel that computes, and what chunks buy one that reads.
-- Every rung says what it expects, and why, before it is measured.  On sim the same rungs have
-- shapes that an interpreter does in a second.
local on_sim = given.device == "sim"
local attention = require("ptxsmith.attention")

-- A read from memory takes about this long when the machine is busy (chunks=1 on an H200: 8 blocks
-- with 16 KB under way each made 188 GB/s).
local latency_us = 0.7

-- prefill_thread fills registers from L1: every element of K and V goes to every thread, and an SM
-- fills 128 bytes a clock, in which it could do 128 multiply-adds.  A pair of query and key costs
-- 2 head_dim multiply-adds and 8 head_dim bytes: four times the time of the multiply-adds alone,
-- whatever `vec` is.  SMs without a block stand idle.
local function prefill_us(p, work, ceiling)
  local queries = 128 // work.params.slice
  local blocks = p.batch * p.heads_q * ((p.seqlen_q + queries - 1) // queries)
  return {
    us = 4 * attention.fma_us(p, ceiling) / math.min(1, blocks / ceiling.sm_count),
    why = "registers are filled from L1 at 128 bytes a clock",
  }
end

-- decode_splitk: a block has threads * unroll loads of K and of V under way, vec elements each.
-- Little's law: its rate is those bytes over the latency, until all blocks together meet the roof.
local function decode_us(p, work, ceiling)
  local v = work.params
  local bytes = 32 * v.warps * v.unroll * 2 * v.vec * 4
  local per_block_gbs = bytes / (latency_us * 1e3)
  local blocks = p.batch * p.heads_kv * v.chunks
  return {
    us = attention.bound_with_blocks_us(p, ceiling, blocks, per_block_gbs) + 2,
    why = "bytes under way over the latency, and two launches",
  }
end

return {
  rungs = {
    {
      name = "prefill: vec",
      doc = "scalar loads to 16-byte loads",
      template = "prefill_thread",
      problems = { on_sim and "b=1,hq=2,hkv=2,sq=96,sk=96,d=64"
        or "b=1,hq=32,hkv=32,sq=512,sk=512,d=64" },
      params = { vec = { 1, 2, 4 }, slice = { 1 } },
      predict = prefill_us,
    },
    {
      name = "decode: chunks",
      doc = "one block a head to enough for every SM",
      template = "decode_splitk",
      problems = { on_sim and "b=1,hq=2,hkv=2,sq=1,sk=1024,d=128"
        or "b=1,hq=8,hkv=8,sq=1,sk=16384,d=128" },
      params = { chunks = on_sim and { 1, 2, 4 } or { 1, 2, 4, 8, 16, 32, 64 },
        warps = { 4 }, unroll = { 4 }, vec = { 4 } },
      predict = decode_us,
    },
  },
}
