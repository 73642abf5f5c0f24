package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// pythonProgram runs the tests of examples/sim without pytest, launches often, and meets errors. Its Triton compiles every function to
// the same kernel, and keeps what it was asked for.
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

import sys, types
class Param:
    def __init__(self, name, is_constexpr=False, **default):
        self.name, self.is_constexpr, self.has_default, self.default = name, is_constexpr, bool(default), default.get("default")
asked = []
def compile(source, target, options):
    asked.append((source, target, options))
    return types.SimpleNamespace(asm={"ptx": open("softmax.ptx").read()}, metadata=__import__("json").load(open("softmax.json")))
for name, has in [("triton", {"compile": compile}), ("triton.backends", {}), ("triton.backends.compiler", {"GPUTarget": lambda *a: a}),
                  ("triton.compiler", {"ASTSource": lambda fn, signature, constexprs: (signature, constexprs)})]:
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(has)
params = [Param("x"), Param("y"), Param("n"), Param("BLOCK", True, default=64)]
softmax = gpu.triton(types.SimpleNamespace(params=params, arg_names=[p.name for p in params]))
many = numpy.ones((4, 1000), "f4"), simgpu.Fresh(numpy.zeros((4, 1000), "f4"))
for options in [{}, {}, {"num_warps": 8}]:
    r = softmax[lambda named: (named["BLOCK"] // 256,)](*many, 1000, BLOCK=1024, **options)
    assert r.fault and "softmax.py:17" in r.text, r.text
signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
assert asked == [((signature, {"BLOCK": 1024}), ("cuda", 80, 32), o) for o in ({}, {"num_warps": 8})], asked
for a, want in [(True, "i1"), (7, "i32"), (-2**31, "i32"), (2**31, "i64"), (1.5, "fp32"), (numpy.float16(1), "fp16"), (numpy.uint8(1), "u8"), (numpy.bool_(1), "i1"),
                (numpy.zeros(1, "f8"), "*fp64"), (numpy.zeros(1, "i2"), "*i16"), (numpy.zeros(1, "?"), "*i1"), (simgpu.Fresh(numpy.zeros(1, "u4")), "*u32")]:
    assert simgpu._triton_type("a", a) == want, (a, want)
for wrong, want in [(lambda: softmax[1](*many), "give n"), (lambda: softmax[1](*many, 1000, 64, 5), "no more than these"), (lambda: softmax[1](*many, "i32:1000"), "argument n is a str"),
                    (lambda: gpu.triton(print), "is no kernel of Triton")]:
    try:
        wrong()
        raise SystemExit(want)
    except simgpu.SimError as e:
        assert want in str(e) and str(e).startswith("error: "), e
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

// since is what a Python file has that came after Python 3.8, as far as its syntax and the names of builtins tell.
func since(f *pysyntax.File) (all []string) {
	say := func(n pysyntax.Node, what string) {
		all = append(all, fmt.Sprintf("line %d: %s", f.Line(n), what))
	}
	united := func(annotations ...pysyntax.Expr) {
		for _, a := range annotations {
			if b, ok := a.(*pysyntax.Binary); ok && b.Op == "|" {
				say(b, "a union of types, of 3.10")
			}
		}
	}
	decorated := func(by []pysyntax.Expr) {
		for _, d := range by {
			if c, ok := d.(*pysyntax.Call); ok {
				d = c.Func
			}
			for a, ok := d.(*pysyntax.Attribute); ok; a, ok = d.(*pysyntax.Attribute) {
				d = a.X
			}
			if _, ok := d.(*pysyntax.Name); !ok {
				say(d, "a decorator that is no name, of 3.9")
			}
		}
	}
	pysyntax.Inspect(f.Body, func(n pysyntax.Node) bool {
		switch n := n.(type) {
		case *pysyntax.Match:
			say(n, "match, of 3.10")
		case *pysyntax.TypeAlias:
			say(n, "type, of 3.12")
		case *pysyntax.With:
			if strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(f.Text(n), "with"), " "), "(") {
				say(n, "with in parentheses, of 3.9")
			}
		case *pysyntax.Try:
			for _, h := range n.Handlers {
				if from, _ := h.Span(); strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(string(f.Source[from:]), "except"), " "), "*") {
					say(n, "except*, of 3.11")
				}
			}
		case *pysyntax.Function:
			decorated(n.Decorators)
			united(n.Returns)
			for _, p := range n.Params {
				united(p.Annotation)
			}
		case *pysyntax.Class:
			decorated(n.Decorators)
		case *pysyntax.AnnAssign:
			united(n.Annotation)
		case *pysyntax.Subscript:
			if x, ok := n.X.(*pysyntax.Name); ok && slices.Contains([]string{"list", "dict", "tuple", "set", "type"}, x.ID) {
				say(n, "a builtin with a type, of 3.9")
			}
		case *pysyntax.Attribute:
			if slices.Contains([]string{"removeprefix", "removesuffix", "bit_count"}, n.Attr) {
				say(n, n.Attr+", of 3.9 or later")
			}
		case *pysyntax.Call:
			if x, ok := n.Func.(*pysyntax.Name); ok && x.ID == "zip" && slices.ContainsFunc(n.Args, func(a pysyntax.Arg) bool { return a.Name == "strict" }) {
				say(n, "a strict zip, of 3.10")
			}
		case *pysyntax.String:
			for _, field := range n.Fields {
				if strings.ContainsAny(f.Text(field), "'\"\\\\") {
					say(n, "quotes or backslashes in a field, of 3.12")
				}
			}
		}
		return true
	})
	return all
}

// TestSimPythonIsOld: simgpu.py has nothing that Python 3.8 lacks. Where a Python runs it, that one is later.
func TestSimPythonIsOld(t *testing.T) {
	_, module, _ := command(t.Context(), "sim", "python")
	of := func(text string) []string {
		f, err := pysyntax.Parse("simgpu.py", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return since(f)
	}
	for _, later := range []string{"match x:\n    case 1:\n        pass\n", "type A = int\n", "with (a as b, c as d):\n    pass\n", "try:\n    pass\nexcept* E:\n    pass\n",
		"@a[0].b\ndef f():\n    pass\n", "@(yield)\nclass A:\n    pass\n", "def f(x: int | None):\n    pass\n", "def f() -> A | B:\n    pass\n", "x: A | B = 1\n", "x = list[int]\n",
		"a.removeprefix('b')\n", "zip(a, b, strict=True)\n", "f'{a['b']}'\n"} {
		if len(of(module+later)) != 1 {
			t.Errorf("not seen: %s", later)
		}
	}
	if all := of(module); len(all) > 0 || len(module) < 1000 {
		t.Errorf("simgpu.py of %d bytes is not for 3.8: %v", len(module), all)
	}
}
