package simrun

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	_ "github.com/warpline-ml/warpline/internal/engines" // which know cuda:0
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// TestDevice: a kernel that runs on a card too has the results of both compared element by element. The card is a simulated one
// behind a C library in the place of the driver's, and what it copies back may be wrong.
func TestDevice(t *testing.T) {
	s, err := simcuda.New(simcuda.Config{Card: "h100-80"})
	if err != nil {
		t.Fatal(err)
	}
	api := s.API()
	flip, copyBack, launch, r := -1, api.MemcpyDtoHAsync, api.LaunchKernelEx, driver.Success
	api.MemcpyDtoHAsync = func(dst uintptr, src driver.Ptr, n int64, stream driver.Stream) driver.Result {
		r := copyBack(dst, src, n, stream)
		if r == driver.Success && flip >= 0 && n == 4000 {
			hostmem.Bytes(dst, int(n))[flip] ^= 1
		}
		return r
	}
	api.LaunchKernelEx = func(c *driver.LaunchConfig, f driver.Function, params []byte) driver.Result {
		if r != driver.Success {
			return r
		}
		return launch(c, f, params)
	}
	t.Setenv("WARPLINE_LIBCUDA", shimtest.Install(t, api))
	swish := Config{File: "../../examples/kernels/swish.ptx", Kernel: "swish", Grid: "4", Block: "256", Args: []string{"f32[1000]=0.5", "f32[1100]", "i32:1000"}, Device: "cuda:0"}
	run := func(c Config) *Result {
		t.Helper()
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	d := run(swish).Device
	if d == nil || d.Differs() || len(d.Buffers) != 2 || d.Device != "cuda:0" || d.Seconds <= 0 {
		t.Fatalf("%+v", d)
	}
	if x := d.Buffers[1]; x.Arg != 1 || x.Elements != 1100 || x.Exact != 1000 || x.Unwritten != 100 || x.Different != 0 || x.First != -1 {
		t.Errorf("%+v", x)
	}

	changed := run(swish)
	if flip = 4*7 + 3; flip > 0 { // an exponent
		changed = run(swish)
	}
	x := changed.Device.Buffers[0]
	if !changed.Device.Differs() || x.Exact != 999 || x.Different != 1 || x.First != 7 || x.Simulated != "0.5" || x.There == "0.5" {
		t.Errorf("%+v", x)
	}
	if text := changed.Text(100); !strings.Contains(text, "the results differ") || !strings.Contains(text, "element 7: ") {
		t.Error(text)
	}
	flip = 4 * 7 // a last bit
	if x := run(swish).Device.Buffers[0]; x.Different != 0 || x.Exact != 999 || x.Worst <= 0 {
		t.Errorf("%+v", x)
	}
	exact := swish
	exact.ToleranceGiven = true
	if x := run(exact).Device.Buffers[0]; x.Different != 1 || x.First != 7 {
		t.Errorf("%+v", x)
	}
	flip = -1

	r = driver.OutOfResources
	if d := run(swish).Device; !d.Differs() || !strings.Contains(d.Error, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES") {
		t.Errorf("%+v", d)
	}
	r = driver.Success

	broken := Config{File: filepath.Join(examples, "sum_bug.ptx"), Grid: "4", Block: "256", Args: []string{"f32[1000]=1", "f32[4]", "i32:1000"}, Device: "cuda:0", Checks: "racecheck"}
	if r := run(broken); r.Device != nil || r.Found == 0 {
		t.Errorf("a kernel with findings ran: %+v", r.Device)
	}
	for what, c := range map[string]Config{
		"cpu":         {File: swish.File, Kernel: "swish", Block: "1", Args: swish.Args, Device: "cpu"},
		"null":        {File: swish.File, Kernel: "swish", Block: "1", Args: swish.Args, Device: "null:a100-80"},
		"other":       {File: swish.File, Kernel: "swish", Block: "1", Args: swish.Args, Device: "other:0"},
		"--sample":    {File: swish.File, Kernel: "swish", Block: "1", Args: swish.Args, Device: "cuda:0", Sample: 1},
		"--tolerance": {File: swish.File, Kernel: "swish", Block: "1", Args: swish.Args, Device: "cuda:0", Tolerance: -1},
	} {
		if _, err := Run(t.Context(), c); err == nil || advice.HintOf(err) == "" && what != "other" || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestApart: elements differ by a share, and integers by any bit.
func TestApart(t *testing.T) {
	bytes := func(typ, v string) []byte {
		b, err := elems[typ].parse(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		typ, a, b string
		want      string
	}{
		{"f32", "1", "1", "none"}, {"f32", "0", "-0", "little"}, {"f32", "2", "2.000001", "little"}, {"f16", "1", "1.001", "little"}, {"bf16", "1", "1.0078125", "little"},
		{"f64", "1", "1.0000000000000002", "little"}, {"f32", "Inf", "3", "all"}, {"f32", "NaN", "3", "all"}, {"f32", "1", "1.001", "much"}, {"i64", "9007199254740993", "9007199254740992", "much"}, {"u8", "255", "0", "much"}, {"i8", "-1", "1", "much"},
	} {
		e := elems[c.typ]
		off := e.apart(bytes(c.typ, c.a), bytes(c.typ, c.b))
		got := "much"
		switch {
		case off == 0:
			got = "none"
		case off <= tolerances[c.typ]:
			got = "little"
		case off > 1e300:
			got = "all"
		}
		if got != c.want {
			t.Errorf("%s %s and %s: %v, %s; want %s", c.typ, c.a, c.b, off, got, c.want)
		}
	}
}
