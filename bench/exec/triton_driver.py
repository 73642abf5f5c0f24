"""Triton's compiler and launches with a driver object of our own, which calls libcuda.so.1 by ctypes:

    warpline sim exec -- python triton_driver.py add|add_broken|softmax|softmax_broken

TRITON_PTXAS_PATH names ptxas.py, and TRITON_CACHE_DIR a fresh folder: run.sh does all that. No PyTorch is used."""
import ctypes
import sys

import numpy
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

cuda = ctypes.CDLL("libcuda.so.1")


class CudaError(RuntimeError):
    pass


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(code, ctypes.byref(text))
        raise CudaError(f"{name}: {text.value.decode() if text.value else code}")


class Array:
    """A NumPy array's copy on the device, as Triton takes tensors."""

    def __init__(self, host):
        self.host, self.dtype = numpy.ascontiguousarray(host), str(host.dtype)
        self.address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(self.host.nbytes))
        call("cuMemcpyHtoD_v2", self.address, ctypes.c_void_p(self.host.ctypes.data), ctypes.c_size_t(self.host.nbytes))

    def data_ptr(self):
        return self.address.value

    def numpy(self):
        call("cuMemcpyDtoH_v2", ctypes.c_void_p(self.host.ctypes.data), self.address, ctypes.c_size_t(self.host.nbytes))
        return self.host

    def free(self):
        call("cuMemFree_v2", self.address)


SCALARS = {"i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "u8": ctypes.c_uint8,
           "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "fp32": ctypes.c_float, "fp64": ctypes.c_double}


class Launcher:
    """Passes a kernel's arguments by the types of its signature, and the two scratch pointers that Triton adds."""

    def __init__(self, source, metadata):
        self.types, self.metadata = list(source.signature.values()), metadata

    def __call__(self, x, y, z, stream, function, packed, launch_metadata, enter, leave, *arguments):
        values = []
        for kind, v in zip(self.types, arguments):
            if kind == "constexpr":
                continue
            values.append(ctypes.c_uint64(v.data_ptr()) if kind.startswith("*") else SCALARS[kind](v))
        values += [ctypes.c_uint64(0), ctypes.c_uint64(0)]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        threads = 32 * self.metadata.num_warps
        call("cuLaunchKernel", ctypes.c_void_p(function), x, y, z, threads, 1, 1, self.metadata.shared, ctypes.c_void_p(stream), pointers, None)


class Utils:
    def get_device_properties(self, device):
        def attribute(number):
            v = ctypes.c_int()
            call("cuDeviceGetAttribute", ctypes.byref(v), number, device)
            return v.value
        return {"max_shared_mem": attribute(97), "multiprocessor_count": attribute(16), "warpSize": attribute(10), "max_num_regs": attribute(12),
                "sm_clock_rate": attribute(13), "mem_clock_rate": attribute(36), "mem_bus_width": attribute(37)}

    def load_binary(self, name, kernel, shared, device):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(kernel))
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > 48 << 10:
            call("cuFuncSetAttribute", function, 8, shared)
        registers, threads = ctypes.c_int(), ctypes.c_int()
        call("cuFuncGetAttribute", ctypes.byref(registers), 4, function)
        call("cuFuncGetAttribute", ctypes.byref(threads), 0, function)
        return module.value, function.value, registers.value, 0, threads.value

    def unload_module(self, module):
        call("cuModuleUnload", ctypes.c_void_p(module))


class Driver(DriverBase):
    launcher_cls = Launcher

    def __init__(self):
        self.utils = Utils()
        context = ctypes.c_void_p()
        call("cuInit", 0)
        call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)

    @classmethod
    def is_active(cls):
        return True

    def map_python_to_cpp_type(self, kind):
        return kind

    def get_current_target(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(major), 75, 0)
        call("cuDeviceGetAttribute", ctypes.byref(minor), 76, 0)
        return GPUTarget("cuda", 10 * major.value + minor.value, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_active_torch_device(self):
        raise NotImplementedError("no PyTorch here")

    def get_benchmarker(self):
        raise NotImplementedError("no times here")


@triton.jit
def add(X, Y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + i, tl.load(X + i, mask=i < n) + tl.load(Y + i, mask=i < n), mask=i < n)


@triton.jit
def add_broken(X, Y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + i, tl.load(X + i) + tl.load(Y + i, mask=i < n), mask=i < n)  # the first load lacks its mask


@triton.jit
def softmax(X, Y, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(X + row * columns + i, mask=i < columns, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(Y + row * columns + i, e / tl.sum(e, 0), mask=i < columns)


@triton.jit
def softmax_broken(X, Y, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(X + row * columns + i, mask=i < columns, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(Y + row * columns + i, e / tl.sum(e, 0))  # the store lacks its mask


def main(name):
    triton.runtime.driver.set_active(Driver())
    generator = numpy.random.default_rng(1)
    kernel = globals()[name]
    if name.startswith("add"):
        x, y = generator.standard_normal((2, 1000), dtype=numpy.float32)
        grid, want = (4,), x + y
        block = 256
    else:
        x = generator.standard_normal((4, 1000), dtype=numpy.float32)
        y = numpy.zeros_like(x)
        grid, block = (4,), 1024
        e = numpy.exp(x.astype(numpy.float64) - x.max(1, keepdims=True))
        want = e / e.sum(1, keepdims=True)
    X, Y = Array(x), Array(y)
    kernel[grid](X, Y, 1000, BLOCK=block)
    error = numpy.abs(Y.numpy() - want).max()
    print(f"{name}: greatest error {error:.1e}")
    X.free()
    Y.free()
    assert error < 1e-6, name


if __name__ == "__main__":
    main(sys.argv[1])
