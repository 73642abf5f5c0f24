"""pytest examples/sim, beside simgpu.py: warpline sim python >simgpu.py"""
import numpy
import simgpu


def sums(file):
    x, y = numpy.ones(1000, "f4"), numpy.zeros(4, "f4")
    with simgpu.GPU(card="a100-80") as gpu:
        return y, gpu.module(file)["sum"](x, simgpu.Fresh(y), 1000, grid=4, block=256)


def test_sum():
    y, result = sums("sum.ptx")
    simgpu.assert_clean(result)
    assert y.tolist() == [256, 256, 256, 232]


def test_bug_is_found():
    assert {f["check"] for f in sums("sum_bug.ptx")[1].findings} == {"racecheck", "memcheck"}
