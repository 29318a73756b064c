-- attention: the work of a problem and the least time it can take; what predictions start from.
--
-- p       a problem's values: batch heads_q heads_kv seqlen_q seqlen_k head_dim causal flops kv_bytes
-- ceiling rooflines of the device: read_gbs, fma_gflops
local attention = {}

-- Query-key pairs that are not masked, per batch and head.  Query i sees seqlen_k - seqlen_q + i + 1
-- keys when causal.
function attention.pairs_seen(p)
  if p.causal == 0 then return p.seqlen_q * p.seqlen_k end
  local seen = 0
  local first = math.max(0, p.seqlen_q - p.seqlen_k) -- queries before it see nothing
  local n = p.seqlen_q - first
  local least = p.seqlen_k - p.seqlen_q + first + 1
  if n > 0 then seen = n * least + n * (n - 1) // 2 end
  return seen
end

-- Microseconds to read K and V once:  bytes / (GB/s * 1e3).
function attention.read_us(p, ceiling) return p.kv_bytes / (ceiling.read_gbs * 1e3) end

-- Microseconds for the multiply-adds at full rate:  flops / (GFLOP/s * 1e3).
function attention.fma_us(p, ceiling) return p.flops / (ceiling.fma_gflops * 1e3) end

-- No kernel is faster than the slower of the two.
function attention.bound_us(p, ceiling)
  return math.max(attention.read_us(p, ceiling), attention.fma_us(p, ceiling))
end

-- The same when only `blocks` of the device's `sms` SMs have work, and one block alone reads at most
-- `per_block` GB/s.
function attention.bound_with_blocks_us(p, ceiling, blocks, per_block)
  local share = math.min(1, blocks / ceiling.sm_count)
  local read = p.kv_bytes / (math.min(ceiling.read_gbs, blocks * per_block) * 1e3)
  return math.max(read, attention.fma_us(p, ceiling) / share)
end

return attention
