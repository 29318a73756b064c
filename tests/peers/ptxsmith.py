"""ptxsmith's shared library on PyTorch's own context, stream and tensors, through ctypes.

    lib = Library("build/libptxsmith.so")
    op = lib.operator("decode_splitk", "dtype=bf16", "b=1,hq=8,hkv=8,sq=1,sk=1024,d=128,dtype=bf16")
    op.bind(q=q, k=k, v=v, o=o, lse=lse)
    op.launch()

A template of None is chosen by the planner, parameters of None are those that the planner's table has for
the template and this device; op.choice() says what came of it.

Errors are exceptions with the library's text.  Nothing is copied: tensors must outlive the operator.
"""
import ctypes as c

import torch

MAX_RANK = 6
ASKED = {"head_dim", "head_dim_v", "dtype", "dtype_o", "dtype_kv", "causal", "window", "softcap", "alibi",
         "sinks", "varlen", "paged", "shared"}  # parameters that the problem sets
DTYPES = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3,
          torch.float8_e4m3fn: 4, torch.float8_e5m2: 5, torch.int32: 6, torch.int64: 7,
          torch.uint8: 8}


class Tensor(c.Structure):
    _fields_ = [("data", c.c_uint64), ("dtype", c.c_int), ("rank", c.c_int),
                ("shape", c.c_int64 * MAX_RANK), ("stride", c.c_int64 * MAX_RANK)]


class Options(c.Structure):
    _fields_ = [("target", c.c_char_p), ("hook", c.c_char_p), ("grid", c.c_uint32), ("tuned", c.c_int)]


class Arg(c.Structure):
    _fields_ = [("name", c.c_char_p), ("doc", c.c_char_p), ("role", c.c_int), ("dtype", c.c_int),
                ("rank", c.c_int), ("shape", c.c_int64 * MAX_RANK), ("alignment", c.c_uint32),
                ("optional", c.c_int)]


class Error(RuntimeError):
    pass


class Library:
    """A session and PyTorch's current device, adopted with its current stream."""

    def __init__(self, path):
        self.api = c.CDLL(path)
        for name in ("psm_error", "psm_variant_ptx", "psm_variant_id", "psm_operator_why"):
            getattr(self.api, name).restype = c.c_char_p
        self.api.psm_operator_variant.restype = c.c_void_p
        for name in ("psm_workspace_bytes", "psm_workspace_zero_bytes"):
            getattr(self.api, name).restype = c.c_uint64
        self.session, self.device = c.c_void_p(), c.c_void_p()
        self.check(self.api.psm_session_open(None, c.byref(self.session)))
        torch.cuda.current_stream().synchronize()  # makes the context
        context = c.c_void_p()
        if c.CDLL("libcuda.so.1").cuCtxGetCurrent(c.byref(context)):
            raise Error("there is no current CUDA context")
        stream = c.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.api.psm_device_adopt(self.session, context, stream, c.byref(self.device)))

    def check(self, status):
        if status:
            raise Error(self.api.psm_error(self.session).decode().strip())

    def use_stream(self, stream):
        self.check(self.api.psm_device_set_stream(self.device, c.c_void_p(stream.cuda_stream)))

    def operator(self, template, params, problem, grid=0, hook=None, tuned=False, **ints):
        """`ints`: named values of the problem that its text can't give (a ceiling's `blocks`).
        `tuned`: what `params` leaves open is the planner's, not the template's."""
        return Operator(self, template, params, problem, grid, hook, tuned or params is None, ints)


class Operator:
    def __init__(self, lib, template, params, problem, grid, hook, tuned, ints):
        self.lib, self.handle, self.kept = lib, c.c_void_p(), {}
        given = c.c_void_p()
        lib.check(lib.api.psm_problem_new(lib.session, problem.encode(), c.byref(given)))
        for name, value in ints.items():
            lib.check(lib.api.psm_problem_set_int(given, name.encode(), c.c_int64(value)))
        text = lambda x: x.encode() if x is not None else None
        options = Options(hook=text(hook), grid=grid, tuned=tuned)
        try:
            lib.check(lib.api.psm_operator_new(lib.device, text(template), text(params), given,
                                               c.byref(options), c.byref(self.handle)))
        finally:
            lib.api.psm_problem_free(given)
        bytes_ = lib.api.psm_workspace_bytes(self.handle)
        if bytes_:
            self.workspace = torch.zeros(bytes_ + 256, dtype=torch.uint8, device="cuda")
            at = (self.workspace.data_ptr() + 255) // 256 * 256
            lib.check(lib.api.psm_bind_workspace(self.handle, c.c_uint64(at), c.c_uint64(bytes_)))

    def args(self):
        """Name -> shape of every tensor the caller binds."""
        found, arg, i = {}, Arg(), 0
        while self.lib.api.psm_operator_arg(self.handle, i, c.byref(arg)) == 0:
            if arg.role in (1, 2, 3):
                found[arg.name.decode()] = tuple(arg.shape[: arg.rank])
            i += 1
        return found

    def variant(self, step=0):
        v = c.c_void_p(self.lib.api.psm_operator_variant(self.handle, step))
        return self.lib.api.psm_variant_id(v).decode()

    def ptx(self, step=0):
        v = c.c_void_p(self.lib.api.psm_operator_variant(self.handle, step))
        return self.lib.api.psm_variant_ptx(v, None).decode()

    def own(self):
        """The parameters but for those that the problem asks for."""
        return " ".join(p for p in self.variant().split()[1:] if p.split("=")[0] not in ASKED)

    def choice(self):
        """Template and own parameters, and where they came from."""
        why = self.lib.api.psm_operator_why(self.handle)
        source = ("as given" if not why else "the template's defaults" if b"the template's defaults" in why
                  else "the planner's row")
        return f"{self.variant().split()[0]} {self.own()} ({source})"

    def bind(self, **tensors):
        """Tensors by Arg name, with their strides; None leaves an optional one out."""
        for name, t in tensors.items():
            made = None
            if t is not None:
                made = Tensor(data=t.data_ptr(), dtype=DTYPES[t.dtype], rank=t.dim())
                made.shape[: t.dim()] = t.shape
                made.stride[: t.dim()] = t.stride()
                self.kept[name] = t
            self.lib.check(self.lib.api.psm_bind(self.handle, name.encode(),
                                                 c.byref(made) if made else None))
        return self

    def launch(self):
        status = self.lib.api.psm_launch(self.handle)
        if status:
            self.lib.check(status)

    def __del__(self):
        if self.handle:
            self.lib.api.psm_operator_free(self.handle)
