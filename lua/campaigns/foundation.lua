-- The first ladder: what wide loads buy a kernel that computes, and what chunks buy one that reads.
-- Every rung says what it expects, and why, before it is measured.
local attention = require("ptxsmith.attention")

-- One SM alone reads this much, about twice its share of the whole (an assumption to be tested).
local per_sm_gbs = 68

-- prefill_thread issues, for a key and a thread, 2 head_dim multiply-adds and 2 head_dim / vec loads.
-- Both go through the same issue slots, so the time over the bound is (fma + loads) / fma.
local function prefill_us(p, work, ceiling)
  local fma = 2 * p.head_dim
  local loads = 2 * p.head_dim / work.params.vec
  return {
    us = attention.fma_us(p, ceiling) * (fma + loads) / fma,
    why = "multiply-adds plus loads share the issue slots",
  }
end

-- decode_splitk has batch * heads_kv * chunks blocks; below one an SM, SMs stand idle.
local function decode_us(p, work, ceiling)
  local blocks = p.batch * p.heads_kv * work.params.chunks
  return {
    us = attention.bound_with_blocks_us(p, ceiling, blocks, per_sm_gbs) + 2,
    why = "bound by the SMs that have a block, and two launches",
  }
end

return {
  rungs = {
    {
      name = "prefill: vec",
      doc = "scalar loads to 16-byte loads",
      template = "prefill_thread",
      problems = { "b=1,hq=8,hkv=8,sq=1024,sk=1024,d=64" },
      params = { vec = { 1, 2, 4 } },
      limit = 900, -- the interpreter needs minutes for half a billion multiply-adds
      predict = prefill_us,
    },
    {
      name = "decode: chunks",
      doc = "one block a head to enough for every SM",
      template = "decode_splitk",
      problems = { "b=1,hq=8,hkv=8,sq=1,sk=16384,d=128" },
      params = { chunks = { 1, 2, 4, 8, 16, 32, 64 } },
      predict = decode_us,
    },
  },
}
