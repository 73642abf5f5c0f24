package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// pythonProgram runs the tests of examples/sim without pytest, launches often, and meets errors.
const pythonProgram = `
import numpy, simgpu, test_sum
test_sum.test_sum()
test_sum.test_bug_is_found()
assert "a100-80" in simgpu.cards()
try:
    simgpu.assert_clean(test_sum.sums("sum_bug.ptx")[1])
    raise SystemExit("clean")
except AssertionError as e:
    assert "racecheck: read after a write" in str(e), e
gpu = simgpu.GPU(check="memcheck")
k = gpu.module("sum.ptx").kernel()
x, y = numpy.ones(1000, "f4"), numpy.zeros(4, "f4")
for i in range(50):
    assert not k(x, y, numpy.int32(1000), grid=(4, 1), block=256).findings
assert y[3] == 232
for arguments, want in [((x,), "3 parameters"), ((x, y, 1.5), "is not a number of that type"), ((x[::2], y, 1), "one behind the other"), ((x, y, object()), "NumPy arrays, numbers")]:
    try:
        k(*arguments, grid=4, block=256)
        raise SystemExit(want)
    except simgpu.SimError as e:
        assert want in str(e) and str(e).startswith("error: "), e
gpu.triton(type("Compiled", (), {"asm": {"ptx": open("softmax.ptx").read()}, "metadata": __import__("json").load(open("softmax.json"))}))
r = gpu.module("softmax.ptx", meta="softmax.json").kernel()(numpy.ones((4, 1000), "f4"), simgpu.Fresh(numpy.zeros((4, 1000), "f4")), 1000, grid=4)
assert r.fault and r.fault["code"] == 700 and "softmax.py:17" in r.text, r.text
gpu._process.process.kill()
try:
    k(x, y, 1000, grid=4, block=256)
    raise SystemExit("alive")
except simgpu.SimError as e:
    assert "has ended" in str(e)
gpu.close()
print("all is right")
`

// TestSimPython runs the examples and more by a Python that has NumPy, with this program as warpline.
func TestSimPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err == nil {
		var out []byte
		if out, err = exec.Command(python, "-c", "import numpy").CombinedOutput(); err != nil {
			t.Skipf("%s has no NumPy: %s", python, out)
		}
	}
	if err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(simExamples + "/test_sum.py")
	if err != nil {
		t.Fatal(err)
	}
	r := simRoom(t)
	status, module, stderr := command(t.Context(), "sim", "python")
	if status != exitDone || stderr != "" {
		t.Fatalf("status %d: %s", status, stderr)
	}
	r.file("simgpu.py", []byte(module))
	r.file("test_sum.py", tests)
	r.file("program.py", []byte(pythonProgram))
	r.file("warpline", []byte("#!/bin/sh\n"+beCommand+"=1 exec '"+self+"' \"$@\"\n"))
	r.check(os.Chmod("warpline", 0o755))
	cmd := exec.CommandContext(t.Context(), python, "program.py")
	cmd.Env = append(os.Environ(), "WARPLINE="+filepath.Join(r.dir, "warpline"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "all is right\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
