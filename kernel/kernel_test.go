package kernel_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/kernel"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

func source(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../examples/kernels/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func simulated(t *testing.T, words string) *tensor.Env {
	t.Helper()
	env, err := tensor.Simulated("a100-80", words)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func load(t *testing.T, env *tensor.Env, ptx []byte) *kernel.Module {
	t.Helper()
	m, err := kernel.Load(env, ptx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// failed is the error that f panics with.
func failed(env *tensor.Env, f func(env *tensor.Env)) error {
	_, err := tensor.Try(env, func(env *tensor.Env) struct{} {
		f(env)
		return struct{}{}
	})
	return err
}

// wants is an error with all of some words, of this file.
func wants(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v; want %q in it", what, err, w)
		}
	}
	if e := (*tensor.Error)(nil); errors.As(err, &e) && e.Op != "kernel.Load" && !strings.Contains(e.Error(), "kernel_test.go:") {
		t.Errorf("%s: not of the program's line: %v", what, err)
	}
}

// kinds has a parameter of each kind; the body does nothing.
const kinds = `.version 7.4
.target sm_80
.address_size 64
.visible .entry _Z5kindsPKfPlijfdbh5Three13__nv_bfloat16(.param .u64 a, .param .u64 b, .param .u32 c, .param .u32 d, .param .f32 e, .param .f64 f, .param .u8 g, .param .u8 h, .param .align 4 .b8 i[12], .param .align 2 .b8 j[2])
{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [b]; st.global.u64 [%rd1], 0; ret; }
.visible .entry plain(.param .u64 a, .param .b32 b, .param .s16 c, .param .u64 .ptr .global .align 4 d)
.reqntid 64, 1, 1
{ ret; }
.visible .entry chased(.param .u64 a)
{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [a]; ld.global.u64 %rd2, [%rd1]; st.global.u32 [%rd2], 0; ret; }
.visible .entry _Z5twicei(.param .u32 a) { ret; }
.visible .entry _Z5twicef(.param .f32 a) { ret; }
`

// TestArguments: each argument is compared with its parameter, and the error says which, what it takes and what to do.
func TestArguments(t *testing.T) {
	env := simulated(t, "")
	m := load(t, env, []byte(kinds))
	k, plain := m.Kernel("kinds"), m.Kernel("plain")
	if want := "kinds(0 const float*, 1 long*, 2 int, 3 unsigned, 4 float, 5 double, 6 bool, 7 unsigned char, 8 Three, 9 __nv_bfloat16)"; k.String() != want {
		t.Errorf("%v, want %s", k, want)
	}
	if want := "plain(0 .u64, 1 .b32, 2 .s16, 3 .u64)"; plain.String() != want {
		t.Errorf("%v, want %s", plain, want)
	}
	x, y := env.Ones(8), env.Arange(8)
	type three struct {
		A int32
		B float32
		C uint32
	}
	good := []any{x, y, 1, uint32(2), 0.5, float32(2), true, uint8(255), three{1, 2, 3}, []byte{1, 2}}
	g := kernel.Cover(1, 32)
	k.Launch(env, g, good...)
	k.Launch(env, g, nil, y, -1, math.MaxUint32, float32(1), 1.0, false, 0, make([]byte, 12), []byte{1, 2})
	plain.Launch(env, kernel.Cover(1, 64), 5, float32(1), int16(-3), x)
	env.Sync()

	for i, c := range []struct {
		arg   any
		words []string
	}{
		{y, []string{"argument 0 is i64[8]; it is for parameter 0, const float*", "Cast"}},
		{(*tensor.Tensor)(nil), []string{"argument 1 is a nil tensor"}},
		{math.MaxInt32 + 1, []string{"argument 2 is a int, 2147483648", "int", "an integer of 4 bytes"}},
		{1.5, []string{"argument 3 is a float64, 1.5", "unsigned"}},
		{1, []string{"argument 4 is a int, 1", "float", "give a float32"}},
		{x, []string{"argument 5 is a tensor", "double"}},
		{2, nil},
		{256, []string{"argument 7", "256"}},
		{make([]byte, 8), []string{"argument 8 has 8 bytes", "12 bytes"}},
		{struct{ A int64 }{}, []string{"argument 9 is a struct { A int64 } of 8 bytes"}},
		{7, nil},
	} {
		if c.words == nil {
			continue
		}
		args := slices.Clone(good)
		args[i] = c.arg
		wants(t, fmt.Sprint("argument ", i), failed(env, func(env *tensor.Env) { k.Launch(env, g, args...) }), append(c.words, "kernel kinds: ")...)
	}
	wide := env.Ones(8, 8).Transpose(0, 1)
	other := simulated(t, "")
	for what, c := range map[string]struct {
		f     func(env *tensor.Env)
		words []string
	}{
		"a strided view":         {func(env *tensor.Env) { k.Launch(env, g, append([]any{wide}, good[1:]...)...) }, []string{"argument 0", "do not lie in a row", "Contiguous"}},
		"a number for a pointer": {func(env *tensor.Env) { k.Launch(env, g, append([]any{8}, good[1:]...)...) }, []string{"argument 0 is a int", "give a tensor"}},
		"a number for .ptr":      {func(env *tensor.Env) { plain.Launch(env, kernel.Cover(1, 64), nil, 1, 1, 1) }, []string{"argument 3 is a int"}},
		"too few":                {func(env *tensor.Env) { plain.Launch(env, kernel.Cover(1, 64), x) }, []string{"1 arguments for 4 parameters", "plain(0 .u64"}},
		"another block":          {func(env *tensor.Env) { plain.Launch(env, g, nil, 1, 1, nil) }, []string{"compiled for [64 1 1]"}},
		"a large block":          {func(env *tensor.Env) { k.Launch(env, kernel.Cover(1, 2048), good...) }, []string{"2048", "1024"}},
		"a large grid":           {func(env *tensor.Env) { k.Launch(env, kernel.Grid{Blocks: [3]int{1, 1 << 16}}, good...) }, []string{"65535"}},
		"a negative size":        {func(env *tensor.Env) { k.Launch(env, kernel.Grid{Shared: -1}, good...) }, []string{"positive"}},
		"much shared memory":     {func(env *tensor.Env) { k.Launch(env, kernel.Grid{Shared: 1 << 20}, good...) }, []string{"1048576 bytes of shared memory"}},
		"a cluster": {func(env *tensor.Env) {
			k.Launch(env, kernel.Grid{Blocks: [3]int{2}, Cluster: [3]int{2, 1, 1}}, good...)
		}, []string{"cluster"}},
		"no threads":     {func(*tensor.Env) { kernel.Cover(1, 0) }, []string{"1 to 1024"}},
		"no kernel":      {func(*tensor.Env) { m.Kernel("kind") }, []string{`no kernel "kind"`, "plain"}},
		"two kernels":    {func(*tensor.Env) { m.Kernel("twice") }, []string{"2 kernels of the name twice", "_Z5twicef"}},
		"another device": {func(env *tensor.Env) { k.Launch(other, g, good...) }, []string{"for each device"}},
		"a tensor of another device": {func(env *tensor.Env) {
			k.Launch(env, g, append([]any{other.Ones(8)}, good[1:]...)...)
		}, []string{"argument 0 is on", "To(env)"}},
		"nothing written": {func(env *tensor.Env) {
			k.Launch(env, g, append([]any{kernel.Arg{Tensor: x, Written: true}}, good[1:]...)...)
		}, []string{"argument 0 is said to be written"}},
		"an unknown write": {func(env *tensor.Env) { m.Kernel("chased").Launch(env, g, x) }, []string{"kernel.Arg"}},
		"a graph":          {func(env *tensor.Env) { k.Launch(env, g, append([]any{tensor.NewParam(x)}, good[1:]...)...) }, []string{"argument 0, f32[8], would be recorded", "tensor.Func"}},
		"a dtype":          {func(env *tensor.Env) { kernel.Empty(env, dtype.Invalid, 2) }, []string{"no dtype"}},
		"a shape":          {func(env *tensor.Env) { kernel.Empty(env, dtype.F32, -2) }, []string{"-2"}},
	} {
		wants(t, what, failed(env, c.f), c.words...)
	}
	k.Launch(env, g, append([]any{kernel.Arg{Tensor: wide, Strided: true}}, good[1:]...)...)
	k.Launch(env.NoGrad(), g, append([]any{tensor.NewParam(x)}, good[1:]...)...)
	env.Sync()
}

// TestLoad: what does not run is refused, with what to do.
func TestLoad(t *testing.T) {
	env, cpu := simulated(t, ""), open(t, "cpu")
	for what, c := range map[string]struct {
		env   *tensor.Env
		ptx   string
		words []string
	}{
		"a CPU":               {cpu, kinds, []string{"cpu runs no kernels", "sim:0"}},
		"no PTX":              {env, "hello", []string{"PTX is what clang -S"}},
		"no kernel":           {env, ".version 7.4\n.target sm_80\n.address_size 64\n", []string{"no kernel", "__global__"}},
		"a later card":        {env, strings.Replace(kinds, "sm_80", "sm_90", 1), []string{"sm_90", "compute capability 8.0", "--cuda-gpu-arch=sm_80"}},
		"a later PTX":         {env, strings.Replace(kinds, "7.4", "9.9", 1), []string{"9.9"}},
		"a wrong instruction": {env, strings.Replace(kinds, "st.global.u64 [%rd1], 0", "st.global.u64 %rd1, 0", 1), []string{"bad operand 1", "line 5"}},
	} {
		_, err := kernel.Load(c.env, []byte(c.ptx))
		wants(t, what, err, c.words...)
	}
}

func open(t *testing.T, name string) *tensor.Env {
	t.Helper()
	env, err := tensor.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestOrder: a launch waits for what other queues have written, and they for it; memory is not taken while it is used.
func TestOrder(t *testing.T) {
	for _, words := range []string{"late,seed=1", "late,seed=2", "late,seed=3"} {
		env := simulated(t, words)
		k := load(t, env, source(t, "swish.ptx")).Kernel("swish")
		side := env.On(env.NewQueue())
		for range 3 {
			x := side.Ones(5000).AddScalar(1)
			y := kernel.Empty(env, dtype.F32, 5000)
			k.Launch(env, kernel.Cover(5000, 256), x, y, 5000)
			z := y.In(side).Scale(2).Sum()
			side.Ones(5000).Scale(7) // where x and y were, if they are let go too soon
			if got, want := z.Item(), 5000*4/(1+math.Exp(-2)); math.Abs(got-want) > 1 {
				t.Fatalf("%s: %v, want %v", words, got, want)
			}
		}
	}
}

// TestInPlace: what a kernel writes counts as an operation in place: a gradient that needs the old value is an error.
func TestInPlace(t *testing.T) {
	env := simulated(t, "check=all")
	k := load(t, env, source(t, "swish.ptx")).Kernel("swish")
	p := tensor.NewParam(env.Ones(4))
	v := env.Ones(4).Scale(2)
	y := p.Mul(v)
	k.Launch(env, kernel.Cover(4, 32), env.Ones(4), v, 4)
	wants(t, "Backward", failed(env, func(*tensor.Env) { y.Sum().Backward() }), "changed in place")
	wants(t, "a result", failed(env, func(env *tensor.Env) { k.Launch(env, kernel.Cover(4, 32), env.Ones(4), p.Scale(2), 4) }), "argument 1", "carries a graph")
	k.Launch(env.NoGrad(), kernel.Cover(4, 32), env.Ones(4), p, 4)
	if got := p.Floats()[3]; math.Abs(got-1/(1+math.Exp(-1))) > 1e-6 {
		t.Errorf("a parameter that a kernel writes is %v", got)
	}
}

// TestFindings: what the checks of a simulated GPU find is the launch's error, with its place in the program and the kernel's line.
func TestFindings(t *testing.T) {
	broken := strings.ReplaceAll(string(source(t, "swish.ptx")), "setp.ge.s32", "setp.gt.s32")
	env := simulated(t, "check=all")
	k := load(t, env, []byte(broken)).Kernel("swish")
	x, y := env.Ones(100), kernel.Empty(env, dtype.F32, 100)
	k.Launch(env, kernel.Cover(128, 128), x, y, 100)
	wants(t, "an overrun", failed(env, func(*tensor.Env) { y.Floats() }), "kernel swish at kernel_test.go:", "swish.cu:7", "initcheck", "thread 100,0,0")

	env = simulated(t, "check=all")
	k = load(t, env, source(t, "swish.ptx")).Kernel("swish")
	k.Launch(env, kernel.Cover(9, 32), kernel.Empty(env, dtype.F32, 9), kernel.Empty(env, dtype.F32, 9), 9)
	wants(t, "an unwritten value", failed(env, func(env *tensor.Env) { env.Sync() }), "kernel swish", "initcheck")
}

// recorder is a T.
type recorder struct{ told []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.told = append(r.told, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); panic(r) }

// TestTest: a wrong kernel fails Test in readable words, and a right one does not.
func TestTest(t *testing.T) {
	right := string(source(t, "swish.ptx"))
	swish := func(c *kernel.Case) {
		x, y := c.Randn(c.N), c.Empty(dtype.F32, c.N)
		c.Launch(kernel.Cover(c.N, 256), x, y, c.N)
		in := x.Floats()
		c.Want(y, 1e-6, func(i int) float64 { return in[i] / (1 + math.Exp(-in[i])) })
	}
	for what, c := range map[string]struct {
		ptx   string
		f     func(*kernel.Case)
		words []string
	}{
		"right":             {right, swish, nil},
		"another number":    {strings.ReplaceAll(right, "0f3F800000", "0f40000000"), swish, []string{"kernel swish of 33 on sim:a100-80, check=all:", "element [0] of f32[33] is", "33 in a row are wrong, up to element [32]", "1e-06 is allowed", kernel.SeedEnv}},
		"an overrun":        {strings.ReplaceAll(right, "setp.ge.s32", "setp.gt.s32"), swish, []string{"kernel swish of 33", "by thread 33,0,0", "swish.cu:7"}},
		"a missing element": {strings.Replace(right, "@%p1 bra \t$L__BB0_2;", "@%p1 bra $L__BB0_2;\nsetp.eq.s32 %p1, %r1, 5;\n@%p1 bra $L__BB0_2;", 1), swish, []string{"element [5] of f32[33] is NaN", "the others are right"}},
		"nothing":           {right, func(*kernel.Case) {}, []string{"launched nothing"}},
	} {
		r := &recorder{}
		kernel.Test(r, []byte(c.ptx), "swish", c.f, 33)
		text := strings.Join(r.told, "\n")
		if (c.words == nil) != (text == "") {
			t.Errorf("%s: %q", what, text)
		}
		for _, w := range c.words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: want %q in\n%s", what, w, text)
			}
		}
	}
}

// TestWatched: launches are told to observers with their place and range, on a device that computes nothing too, and have a row
// in a profile.
func TestWatched(t *testing.T) {
	for _, name := range []string{"sim", "null:a100-80"} {
		env, err := tensor.Fresh(name)
		if err != nil {
			t.Fatal(err)
		}
		k := load(t, env, source(t, "swish.ptx")).Kernel("swish")
		x := env.Ones(600)
		var told []*device.Event
		stop := env.Device().Observe(func(e *device.Event) { told = append(told, e.Clone()) }, device.KindLaunch)
		p := prof.New(prof.Config{})
		prof.Range(env.Profiled(p), "mine", func(env *tensor.Env) {
			k.Launch(env, kernel.Cover(600, 256), x, kernel.Empty(env, dtype.F32, 600), 600)
			env.Sync()
		})
		p.Stop()
		stop()
		if len(told) != 1 {
			t.Fatalf("%s: %d launches", name, len(told))
		}
		l := told[0]
		if s := l.Kernel.Steps[0]; l.Kernel.What() != "kernel swish" || s.Grid != [3]int{3, 1, 1} || s.Block != [3]int{256, 1, 1} || l.Bytes != 4800 || l.Kernel.Written() != 2400 {
			t.Errorf("%s: %v, %+v of %d bytes", name, l.Kernel, s, l.Bytes)
		}
		if !strings.HasPrefix(l.Site.String(), "kernel_test.go:") || l.Range == nil || l.Range.Name != "mine" {
			t.Errorf("%s: at %s in %+v", name, l.Site, l.Range)
		}
		if rows := p.Last().Rows(prof.Op); !slices.ContainsFunc(rows, func(r prof.Row) bool { return r.Name == "kernel swish" && (r.Self > 0 || name != "sim") }) {
			t.Errorf("%s: %+v", name, rows)
		}
	}
}

// TestCaptured: a captured step does what the step does, with the kernel's numbers and grid as they were recorded; a step that
// launches otherwise in each run is an error.
func TestCaptured(t *testing.T) {
	env := simulated(t, "check=all")
	k := load(t, env, source(t, "swish.ptx")).Kernel("swish")
	step := func(n *int) func(x *tensor.Tensor) *tensor.Tensor {
		return func(x *tensor.Tensor) *tensor.Tensor {
			y := x.ZerosLike()
			k.Launch(x.Env(), kernel.Cover(x.Size(), 32), x, y, *n)
			*n--
			return y.Scale(2)
		}
	}
	same := math.MaxInt32
	fixed := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor { same = 50; return step(&same)(x) })
	for i := range 5 {
		x := env.Ones(50).Scale(float64(i))
		v := float64(i)
		if got, want := fixed.Run(x).Floats()[49], 2*v/(1+math.Exp(-v)); math.Abs(got-want) > 1e-5 {
			t.Errorf("run %d: %v, want %v", i, got, want)
		}
	}
	falling := 50
	moving := tensor.Capture(env, step(&falling))
	wants(t, "other numbers", failed(env, func(env *tensor.Env) {
		for range 4 {
			moving.Run(env.Ones(50))
		}
	}), "kernel swish at kernel_test.go:", "other numbers than before")
}

// TestDryRun: a program with a kernel of its own needs on a card that is not there what it needs on one that is, and the kernel is
// named as one that nobody has counted.
func TestDryRun(t *testing.T) {
	var peak int64
	program := func(env *tensor.Env) error {
		k := load(t, env, source(t, "swish.ptx")).Kernel("swish")
		x := env.Ones(1 << 20)
		k.Launch(env, kernel.Cover(1<<20, 256), x, kernel.Empty(env, dtype.F32, 1<<20), 1<<20)
		env.Sync()
		peak = env.Device().Memory().Peak
		return nil
	}
	if err := program(simulated(t, "")); err != nil {
		t.Fatal(err)
	}
	want := peak
	r, err := plan.DryRun("a100-80", program)
	if err != nil || peak != want || !slices.Equal(r.NotCounted, []string{"kernel swish"}) {
		t.Errorf("%v: peak %d, want %d; not counted: %v", err, peak, want, r.NotCounted)
	}
}
