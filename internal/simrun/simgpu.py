"""GPU kernels on a simulated GPU under checks, from Python: PTX of clang, nvcc or Triton, with NumPy arrays as arguments.

    gpu = simgpu.GPU()
    result = gpu.module("sum.ptx")["sum"](x, y, 1000, grid=4, block=256)
    simgpu.assert_clean(result)

Written by "warpline sim python", for that warpline. A process of it runs beside this one; $WARPLINE, the PATH or GPU(warpline=…) tell
where it is. Nothing but the standard library and NumPy is needed, Python 3.8 or later."""

import json
import mmap
import os
import shutil
import subprocess
import tempfile

import numpy

__all__ = ["GPU", "Fresh", "SimError", "assert_clean", "cards"]

_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
          "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool"}


class SimError(RuntimeError):
    """What warpline sim would print as error and hint."""


class Fresh:
    """An array that is written only: on the device nobody has written it, and reading it there is a finding."""

    def __init__(self, array):
        self.array = array


class Result:
    """What a launch did: findings (a list of dicts), counters (a dict) and text, which is what warpline sim run prints if something was
    found. A kernel that was stopped has a fault, and its arrays are as they were."""

    def __init__(self, answer):
        self.findings = answer.get("findings") or []
        self.counters = answer["result"]
        self.fault = self.counters["fault"]
        self.output = self.counters["output"]
        self.text = answer.get("text", "")

    def __repr__(self):
        return self.text or "%s: no finding" % self.counters["kernel"]


def assert_clean(*results):
    """Raises AssertionError with the report of the first result that has a finding."""
    for r in results:
        if r.findings:
            raise AssertionError("\n" + r.text)


def _warpline(path):
    path = path or os.environ.get("WARPLINE") or shutil.which("warpline")
    if not path:
        raise SimError("error: there is no warpline\nhint: put it into the PATH, or name it by $WARPLINE or GPU(warpline=…)")
    return path


def cards(warpline=None):
    """The names of the GPUs that can be imitated."""
    with _Process(warpline) as p:
        return p.ask(op="cards")["cards"]


class _Process:
    def __init__(self, warpline):
        path = _warpline(warpline)
        try:
            self.process = subprocess.Popen([path, "sim", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as e:
            raise SimError("error: cannot run %s: %s\nhint: name another by $WARPLINE or GPU(warpline=…)" % (path, e.strerror)) from None

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except (OSError, ValueError):
            line = b""
        if not line:
            raise SimError("error: the warpline beside this program has ended\nhint: make another GPU")
        answer = json.loads(line)
        if answer.get("error"):
            hint = answer.get("hint")
            raise SimError("error: " + answer["error"] + ("\nhint: " + hint if hint else ""))
        return answer

    def close(self):
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class GPU:
    """A simulated GPU. check, seed, schedule and numerics are those of warpline sim run."""

    def __init__(self, card="", check="all", seed=0, schedule="", numerics="", step_limit=0, warpline=None):
        self._process = _Process(warpline)
        folder = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None
        self._file = tempfile.NamedTemporaryFile(prefix="warpline-", dir=folder)
        self._map = None
        try:
            opened = self._process.ask(op="open", card=card, check=check, seed=seed, schedule=schedule, numerics=numerics,
                                       step_limit=step_limit, memory=self._file.name)
        except SimError:
            self.close()
            raise
        self.compute = opened["compute"]  # capability: 80 for 8.0

    def module(self, ptx, meta=None):
        """The kernels of a PTX file, or of a text that has them. meta is Triton's metadata, as a path or a dict."""
        text, name = ptx, "the module"
        if "\n" not in ptx:
            name = ptx
            try:
                with open(ptx) as f:
                    text = f.read()
            except OSError as e:
                raise SimError("error: cannot read %s: %s\nhint: check the path" % (ptx, e.strerror)) from None
        if isinstance(meta, (str, os.PathLike)):
            with open(meta) as f:
                meta = json.load(f)
        answer = self._process.ask(op="load", name=name, text=text, meta=json.dumps(meta) if meta else "")
        return Module(self, answer["module"], answer.get("kernels") or {}, meta is not None)

    def triton(self, compiled):
        """The kernel of what triton.compile or a warm-up returns: warps and shared memory are those of its metadata. A function of
        @triton.jit is compiled for the card when it is called, as Triton has it: gpu.triton(add)[grid](x, y, n, BLOCK=128)."""
        if not hasattr(compiled, "asm"):
            return _Jit(self, compiled)
        meta = compiled.metadata
        meta = meta._asdict() if hasattr(meta, "_asdict") else dict(meta)
        wanted = ("name", "shared", "num_warps", "num_ctas", "global_scratch_size", "profile_scratch_size")
        module = self.module(compiled.asm["ptx"], {k: meta[k] for k in wanted if meta.get(k) is not None})
        return module[meta["name"]]

    def close(self):
        """Ends the process beside this one."""
        self._process.close()
        if self._map is not None:
            self._map.close()
            self._map = None
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_file", None) is not None and not self._file.closed:
            self.close()

    def _room(self, size):
        if self._map is None or len(self._map) < size:
            if self._map is not None:
                self._map.close()
            self._file.truncate(max(size, 1 << 16))
            self._map = mmap.mmap(self._file.fileno(), max(size, 1 << 16))
        return self._map


class Module:
    """The kernels of a file, by name: module["sum"], or module.kernel() if there is one."""

    def __init__(self, gpu, number, kernels, meta):
        self.gpu, self._number, self.kernels, self._meta = gpu, number, kernels, meta

    def __getitem__(self, name):
        return Kernel(self, name)

    def kernel(self):
        return Kernel(self, "")


class Kernel:
    """A kernel, called with its arguments: NumPy arrays (copied there and back), numbers, None for a null pointer, or the words of
    warpline sim run, such as "i32:5"."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *arguments, grid=1, block=None, shared=None):
        gpu = self.module.gpu
        arrays, sent, size = [], [], 0
        for i, a in enumerate(arguments):
            fresh = isinstance(a, Fresh)
            a = a.array if fresh else a
            if not isinstance(a, numpy.ndarray):
                sent.append(_scalar(i, a))
                continue
            if not a.flags.c_contiguous or a.dtype.name not in _TYPES or not a.dtype.isnative:
                raise SimError("error: argument %d is an array of %s%s\nhint: numpy.ascontiguousarray and astype make one that kernels take" %
                               (i, a.dtype, "" if a.flags.c_contiguous else ", whose elements do not lie one behind the other"))
            sent.append({"type": _TYPES[a.dtype.name], "shape": list(a.shape), "offset": size, "bytes": a.nbytes, "fresh": fresh})
            arrays.append((a, size))
            size += (a.nbytes + 63) // 64 * 64
        memory = gpu._room(size)
        for a, at in arrays:
            numpy.frombuffer(memory, numpy.uint8, a.nbytes, at)[:] = a.reshape(-1).view(numpy.uint8)
        answer = gpu._process.ask(op="launch", module=self.module._number, kernel=self.name, grid=_dims(grid), block=_dims(block),
                                  shared=-1 if shared is None else shared, args=sent)
        result = Result(answer)
        if result.fault is None:
            for a, at in arrays:
                if a.flags.writeable:
                    a.reshape(-1).view(numpy.uint8)[:] = numpy.frombuffer(memory, numpy.uint8, a.nbytes, at)
        return result


class _Jit:
    """A function of @triton.jit: kernel[grid](*arguments, BLOCK=128, num_warps=4), with NumPy arrays for tensors."""

    def __init__(self, gpu, function):
        if not hasattr(function, "params") or not hasattr(function, "arg_names"):
            raise SimError("error: a %s is no kernel of Triton\nhint: give what triton.compile returns, or a function of @triton.jit" % type(function).__name__)
        self.gpu, self.function, self._compiled = gpu, function, {}

    def __getitem__(self, grid):
        return lambda *arguments, **named: self(*arguments, grid=grid, **named)

    def __call__(self, *arguments, grid=1, **named):
        values = {p.name: p.default for p in self.function.params if p.has_default}
        values.update(zip(self.function.arg_names, arguments))
        options = {k: v for k, v in named.items() if k not in self.function.arg_names}
        values.update({k: v for k, v in named.items() if k not in options})
        missing = [p.name for p in self.function.params if p.name not in values]
        if missing or len(arguments) > len(self.function.arg_names):
            raise SimError("error: the kernel takes %s\nhint: give %s" % (", ".join(self.function.arg_names), ", ".join(missing) or "no more than these"))
        constants = {p.name: values[p.name] for p in self.function.params if p.is_constexpr or values[p.name] is None}
        signature = {n: "constexpr" if n in constants else _triton_type(n, values[n]) for n in self.function.arg_names}
        key = repr((sorted(signature.items()), sorted(constants.items()), sorted(options.items())))
        if key not in self._compiled:
            self._compiled[key] = self.gpu.triton(self._compile(signature, constants, options))
        if callable(grid):
            grid = grid(values)
        return self._compiled[key](*[values[n] for n in self.function.arg_names if n not in constants], grid=grid)

    def _compile(self, signature, constants, options):
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        source = ASTSource(fn=self.function, signature=signature, constexprs=constants)
        return triton.compile(source, target=GPUTarget("cuda", self.gpu.compute, 32), options=options)


def _triton_type(name, a):
    a = a.array if isinstance(a, Fresh) else a
    kinds = {"f": "fp", "i": "i", "u": "u"}
    if isinstance(a, (bool, numpy.bool_)):
        return "i1"
    if isinstance(a, int):
        return "i32" if -2**31 <= a < 2**31 else "i64"
    if isinstance(a, float):
        return "fp32"
    if isinstance(a, (numpy.ndarray, numpy.generic)) and (a.dtype.kind in kinds or a.dtype.kind == "b"):
        bits = "i1" if a.dtype.kind == "b" else kinds[a.dtype.kind] + str(8 * a.dtype.itemsize)
        return "*" + bits if isinstance(a, numpy.ndarray) else bits
    raise SimError("error: argument %s is a %s\nhint: kernels of Triton take NumPy arrays, numbers and None" % (name, type(a).__name__))


def _dims(d):
    if d is None:
        return ""
    return ",".join(str(int(n)) for n in (d if isinstance(d, (tuple, list)) else (d,)))


def _scalar(i, a):
    if a is None:
        return {"word": "null"}
    if isinstance(a, str):
        return {"word": a}
    if isinstance(a, numpy.generic) and a.dtype.name in _TYPES:
        number = repr(a.item()) if not isinstance(a, numpy.bool_) else str(int(a))
        return {"word": "%s:%s" % (_TYPES[a.dtype.name], number)}
    if isinstance(a, (bool, int)):
        return {"number": str(int(a))}
    if isinstance(a, float):
        return {"number": repr(a)}
    raise SimError("error: argument %d is a %s\nhint: kernels take NumPy arrays, numbers, None and words such as \"i32:5\"" % (i, type(a).__name__))
