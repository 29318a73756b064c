-- Named problems: the attention shapes of real models, and the campaign's own.
--
-- A model has one prefill problem for each length and one decode problem (a single query) for each
-- number of keys.  dtype is left open: a template's parameter decides.

local models = {
  -- name,           query heads, key heads, elements per head, what it is
  { "llama3-8b",     32,  8, 128, "Llama 3 8B" },
  { "llama3-70b",    64,  8, 128, "Llama 3 70B" },
  { "qwen3-8b",      32,  8, 128, "Qwen 3 8B" },
  { "qwen3-0.6b",    16,  8, 128, "Qwen 3 0.6B" },
  { "mistral-7b",    32,  8, 128, "Mistral 7B" },
  { "gpt2",          12, 12,  64, "GPT-2 small" },
}

local lengths = {
  ["gpt2"] = { prefill = { "256", "1k" }, decode = { "1k" } },
}
local usual = { prefill = { "512", "2k", "8k" }, decode = { "4k", "16k", "128k" } }

local function number_of(text)
  local digits, unit = text:match("^(%d+)(k?)$")
  return math.tointeger(digits) * (unit == "k" and 1024 or 1)
end

local list = {}

local function add(name, doc, values)
  list[#list + 1] = { name = name, doc = doc, values = values }
end

local function shape(b, hq, hkv, sq, sk, d, causal)
  return ("b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=%d"):format(b, hq, hkv, sq, sk, d, causal)
end

for _, model in ipairs(models) do
  local name, hq, hkv, d, doc = table.unpack(model)
  local has = lengths[name] or usual
  for _, length in ipairs(has.prefill) do
    local n = number_of(length)
    add(name .. "/prefill-" .. length, doc .. ", a prompt of " .. n .. " tokens",
      shape(1, hq, hkv, n, n, d, 1))
  end
  for _, length in ipairs(has.decode) do
    local n = number_of(length)
    add(name .. "/decode-" .. length, doc .. ", one token after " .. n - 1,
      shape(1, hq, hkv, 1, n, d, 0))
    add(name .. "/decode-" .. length .. "-b16", doc .. ", 16 sequences, one token each after " .. n - 1,
      shape(16, hq, hkv, 1, n, d, 0))
  end
end

-- Encoders see all tokens.
add("minilm/sentence", "all-MiniLM-L6-v2, the 80 tokens of tests/data", shape(1, 12, 12, 80, 80, 32, 0))
add("minilm/batch-32x256", "all-MiniLM-L6-v2, 32 texts of 256 tokens", shape(32, 12, 12, 256, 256, 32, 0))

-- The campaign's ladder: the prefill it starts from, the decode it is judged by, and shapes that
-- hold every path open (tails, grouped heads, one key).
add("campaign/prefill", "the baseline's prefill", shape(1, 8, 8, 2048, 2048, 128, 0))
add("campaign/prefill-causal", "the same with a causal mask", shape(1, 8, 8, 2048, 2048, 128, 1))
add("campaign/decode-16k", "the decode of the 10 % gate", shape(1, 8, 8, 1, 16384, 128, 0))
add("campaign/decode-gqa", "32 query heads on 8 key heads", shape(1, 32, 8, 1, 16384, 128, 0))
add("campaign/small", "small enough for the interpreter", shape(2, 4, 2, 33, 70, 32, 1))
add("campaign/small-decode", "small enough for the interpreter", shape(2, 8, 2, 1, 257, 32, 0))

return list
