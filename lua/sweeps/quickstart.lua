-- The main job: a small space of each kind of kernel, small enough for the interpreter.
-- `ptxsmith sweep lua/sweeps/quickstart.lua`
return {
  {
    name = "prefill",
    template = "prefill_thread",
    problems = { "b=1,hq=2,hkv=1,sq=64,sk=64,d=64,causal=1" },
    params = { vec = { 1, 2, 4 }, block = { 32, 64 } },
  },
  {
    name = "decode",
    template = "decode_splitk",
    problems = { "b=2,hq=4,hkv=2,sq=1,sk=512,d=64" },
    params = { vec = { 1, 2, 4, 8 }, chunks = { 1, 4, 16 } },
  },
}
