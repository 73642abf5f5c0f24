package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// tiny is a size at which a case takes no time.
func tiny(c *Case) int {
	switch {
	case c.Bench == "ops" && !c.Own:
		return 2 * width
	case c.Bench == "train" && c.Own, c.Name == "adamw":
		return 20
	case c.Bench == "train":
		return 1
	}
	return 4
}

// run is the rows of a Config, quickly made.
func run(t *testing.T, c Config) (rows []Row) {
	t.Helper()
	c.Rounds, c.Time = 1, 1
	seen, err := Run(t.Context(), c, func(r Row) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	if len(seen.String()) < 20 || strings.ContainsAny(Text(rows, 100), "\x00") {
		t.Errorf("%+v: %s", c, seen)
	}
	return rows
}

// TestCases measures every case at a small size, on the processor and, where that means something, on paper. Those of a size go
// together, as each run measures the processor first; a run of the tests takes half of these.
func TestCases(t *testing.T) {
	type group struct {
		bench, device string
		n             int
	}
	groups, spread := map[group][]*Case{}, testutil.NewSpread(t, testutil.Seed(t), 2)
	for _, c := range cases {
		if !c.Asked {
			g := group{c.Bench, "cpu", tiny(c)}
			groups[g] = append(groups[g], c)
		}
		if !c.Host {
			g := group{c.Bench, "null:h200", tiny(c)}
			groups[g] = append(groups[g], c)
		}
	}
	for g, of := range groups {
		name := fmt.Sprintf("%s %d on %s", g.bench, g.n, g.device)
		if !spread.Takes(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, c := range of {
				names = append(names, c.Name)
			}
			rows := run(t, Config{Bench: g.bench, Cases: names, N: g.n, Device: g.device})
			if len(rows) != len(of) {
				t.Fatalf("%d rows of %v", len(rows), names)
			}
			for i, c := range of {
				sane(t, c, &rows[i], g.device)
			}
		})
	}
}

func sane(t *testing.T, c *Case, r *Row, name string) {
	t.Helper()
	if r.Bench != c.Bench || r.Case != c.Name || r.N != tiny(c) || r.DType != "f32" || r.Device != name || r.Unit != c.Unit || r.Threads != par.Threads() {
		t.Errorf("%+v", r)
	}
	if !(0 < r.Low && r.Low <= r.Median && r.Median <= r.High) || math.IsInf(r.High, 0) || r.Modelled != (name != "cpu") || r.Modelled != (r.Model != nil) {
		t.Errorf("%+v", r)
	}
	if (r.Ceiling == nil) != c.Free || r.Ceiling != nil && math.Abs(*r.Share**r.Ceiling-r.Median) > 1e-9*r.Median {
		t.Errorf("ceiling %v of %+v", r.Ceiling, r)
	}
	if r.Profile != nil {
		sum := 0.0
		for _, p := range r.Profile.Parts {
			sum += p.Seconds
		}
		if r.Modelled || sum > r.Profile.Turn || len(r.Profile.Parts) == 0 && c.Bench != "data" {
			t.Errorf("%+v: its parts take %g of a turn of %g", r, sum, r.Profile.Turn)
		}
	} else if !r.Modelled {
		t.Errorf("%+v: no profile", r)
	}
	if (r.GFLOPS == r.Median) != (c.Bench == "gemm") || (r.MS > 0) != (c.Bench == "ops" || c.Bench == "train") || (r.PeakBytes > 0) != (c.Bench == "train") {
		t.Errorf("for scripts: %+v", r)
	}
}

// TestFields: a line of JSON has these fields, and no other, in this order.
func TestFields(t *testing.T) {
	for bench, more := range map[string]string{"gemm": "gflops", "ops": "ms", "train": "ms peak_bytes"} {
		c := All(bench)[0]
		r := run(t, Config{Bench: bench, Cases: []string{c.Name}, N: tiny(c)})[0]
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		d := json.NewDecoder(strings.NewReader(string(raw)))
		for i := 0; d.More() || i == 0; i++ {
			token, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			if name, ok := token.(string); ok && i%2 == 1 {
				fields = append(fields, name)
			}
		}
		if got, want := strings.Join(fields, " "), "bench case n dtype device threads modelled median low high unit ceiling share "+more; got != want {
			t.Errorf("%s: fields %q, want %q", bench, got, want)
		}
	}
}

// TestRefusals: what cannot be measured is refused before anything is, with what would do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		Config
		text, hint string
	}{
		{Config{Bench: "gem"}, `there is no bench "gem"`, "did you mean gemm?"},
		{Config{Bench: "gemm", Cases: []string{"sqare"}}, `gemm has no case "sqare"`, "did you mean square?"},
		{Config{Bench: "train", Cases: []string{"gpt"}}, `train has no case "gpt"`, "gpt-128"},
		{Config{Bench: "gemm", DType: "float32"}, `--dtype is "float32"`, "f32"},
		{Config{Bench: "train", Cases: []string{"mlp"}, DType: "f64"}, "case mlp is not for f64", "--dtype"},
		{Config{Bench: "data", DType: "bf16"}, "no case of data", "--dtype"},
		{Config{Bench: "gemm", N: -1}, "--n is -1", "from 1"},
		{Config{Bench: "gemm", N: 1 << 40}, "--n is", "from 1"},
		{Config{Bench: "gemm", Threads: -1}, "--threads is -1", "1 or more"},
		{Config{Bench: "gemm", Device: "cpv"}, "cpv", "did you mean cpu?"},
		{Config{Bench: "gemm", Device: "null:h300"}, "h300", "h200"},
		{Config{Bench: "data", Device: "null:h200", Cases: []string{"idx"}}, "case idx is of the host", "--device cpu"},
		{Config{Bench: "gemm", Cases: []string{"square"}, N: 1 << 20}, "out of memory", "--"},
	} {
		_, err := Run(t.Context(), c.Config, func(Row) error { t.Errorf("%+v: a row", c.Config); return nil })
		var known *advice.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, c.text) || !strings.Contains(known.Hint, c.hint) {
			t.Errorf("%+v: %v, hint %v", c.Config, err, known)
		}
	}
}

// TestChoice: without names there are all cases but those that must be asked for, and another size is for those alone whose
// measure it is.
func TestChoice(t *testing.T) {
	names := func(c Config) (list []string) {
		r, err := c.runner()
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range r.jobs {
			list = append(list, j.Name)
		}
		return slices.Compact(list)
	}
	if got := names(Config{Bench: "train"}); strings.Join(got, " ") != "mlp mlp-adamw convnet gpt-128 gpt-384 resnet18 generate-128 generate-384" {
		t.Errorf("train measures %v", got)
	}
	if got := names(Config{Bench: "gemm", N: 100}); !slices.Equal(got, []string{"square"}) {
		t.Errorf("gemm --n measures %v", got)
	}
	if got := names(Config{Bench: "train", Device: "sim:0"}); slices.Contains(got, "generate-128") || !slices.Contains(got, "mlp") {
		t.Errorf("train --device sim:0 measures %v", got)
	}
	for _, b := range Benches {
		if list := Names(b); len(list) == 0 || !strings.Contains(Help(b), list[0]) || len(slices.Compact(slices.Sorted(slices.Values(list)))) != len(list) {
			t.Errorf("%s has the cases %v", b, list)
		}
	}
	if Find("gemm", "square") == nil || Find("gemm", "mlp") != nil {
		t.Error("Find finds the wrong cases")
	}
}

// TestInterrupt: between turns a run looks whether it is to end, and a reader that fails ends it.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Config{Bench: "gemm", N: 4}, func(Row) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	full := errors.New("full")
	if _, err := Run(t.Context(), Config{Bench: "gemm", N: 4, Rounds: 1, Time: 1}, func(Row) error { return full }); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

// TestModel counts two launches by hand: a product, which arithmetic binds, and a sum, which memory does.
func TestModel(t *testing.T) {
	const n, h200 = 4096, 132 * 4096 * 1830e6 // 989 TFLOP/s
	env, err := tensor.Fresh("null:h200")
	if err != nil {
		t.Fatal(err)
	}
	x := env.NoGrad().Randn(n, n).Cast(dtype.BF16)
	c, err := newCeilings(env)
	if err != nil {
		t.Fatal(err)
	}
	launches := Record(env.Device(), func() { x.MatMul(x); x.Add(x) })
	m := c.Model(launches)
	terms := map[string]Term{}
	for _, x := range m.Terms {
		terms[x.Op] = x
	}
	if got := slices.Sorted(maps.Keys(terms)); !slices.Equal(got, []string{"add", "matmul"}) {
		t.Fatalf("terms of %v", got)
	}
	product, sum := terms["matmul"], terms["add"]
	close := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	close("product", product.Compute, 2*n*n*n/(0.40*h200))
	close("sum", sum.Memory, 3*2*n*n/4.32e12)
	close("launch", sum.Launch, 1.5e-6)
	close("all", m.Seconds(), product.Compute+sum.Memory+1.5e-6*float64(product.Kernels+sum.Kernels))
	close("floor", m.Floor, 2*n*n*n/h200+3*2*n*n/4.8e12)
	if product.Memory != 0 || sum.Compute != 0 || launches.FLOPs() != 2*n*n*n+n*n {
		t.Errorf("%+v, %+v, %d", product, sum, launches.FLOPs())
	}
	if text := m.Text(100); !strings.Contains(text, "matmul") || !strings.Contains(text, "all") {
		t.Error(text)
	}
}

// TestFloor: on the processor, writing counts twice, and float64 has half the arithmetic.
func TestFloor(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCeilings(env)
	if err != nil {
		t.Fatal(err)
	}
	c.Refresh()
	if c.fma <= 0 || c.bandwidth(1) <= 0 || c.bandwidth(1<<40) <= 0 || c.bandwidth(leastBytes+1) != c.bandwidth(4*leastBytes) {
		t.Fatalf("%+v", c)
	}
	c.fma, c.memory = 100e9, map[int]float64{}
	for class := range 40 {
		c.memory[class] = 1e9
	}
	const n = 512
	x := env.NoGrad().Randn(n, n)
	if got, want := c.Floor(Record(env.Device(), func() { x.MatMul(x) }), 0), 2.0*n*n*n/100e9; math.Abs(got-want) > 1e-9 && got < 3*4*n*n/1e9 {
		t.Errorf("product: %g, want %g", got, want)
	}
	if got, want := c.Floor(Record(env.Device(), func() { x.Neg() }), 0), 3*4*float64(n*n)/1e9; math.Abs(got-want) > 1e-12 {
		t.Errorf("negation: %g, want %g", got, want)
	}
	if c.peak(dtype.F64) != 50e9 || cpufeat.Active() != cpufeat.AVX512BF16 && c.peak(dtype.BF16) != 100e9 {
		t.Errorf("float64 %g, bfloat16 %g", c.peak(dtype.F64), c.peak(dtype.BF16))
	}
}

// TestCopy: a simulated card's copies have the times of its link, a processor's are its memory's; both have every size in every kind.
func TestCopy(t *testing.T) {
	collect := func(c CopyConfig) (rows []Row) {
		if err := RunCopy(t.Context(), c, func(r Row) error { rows = append(rows, r); return nil }); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	sizes := []int64{1 << 10, 1 << 20, 5 << 20}
	rows := collect(CopyConfig{Device: "sim:h100-80", Sizes: sizes})
	if len(rows) != 12 || !slices.EqualFunc(rows, collect(CopyConfig{Device: "sim:h100-80", Sizes: sizes, Rounds: 3}), func(a, b Row) bool { return a.GBPS == b.GBPS }) {
		t.Fatalf("%d rows, or others the second time", len(rows))
	}
	h100, _ := cards.Find("h100-80")
	for i, r := range rows {
		if r.Bytes != sizes[i/4] || r.N != int(r.Bytes) || !r.Modelled || r.GBPS <= 0 || r.GBPS > float64(h100.Link) || r.Low != r.Median || math.Abs(r.MS*r.GBPS*1e6-float64(r.Bytes)) > 1 {
			t.Errorf("%+v", r)
		}
		if r.Memory == Pinned && (math.Abs(*r.Ceiling-float64(h100.Link)) > 0 || r.GBPS < rows[i+1].GBPS) {
			t.Errorf("%+v, pageable %v", r, rows[i+1].GBPS)
		}
	}
	for _, r := range collect(CopyConfig{Sizes: []int64{100, 1 << 16}, Rounds: 5}) {
		if r.Direction != OnHost || r.Modelled || !(r.Low <= r.Median && r.Median <= r.High) || r.GBPS <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if text := CopyText(rows[:6], 100); strings.Count(text, "\n") != 4 || !strings.Contains(text, "to host, pinned") {
		t.Error(text)
	}
	if svg := CopyPlot(rows).SVG(800, 420); !strings.Contains(svg, "modelled") || strings.Count(svg, "<path") < 3 {
		t.Error(svg)
	}
	// Pinned memory is as quick in both directions of a simulated card: one curve would hide the other.
	var names []string
	for _, s := range CopyPlot(rows).Series {
		names = append(names, s.Name)
	}
	if want := []string{"to device, pinned = to host, pinned", "to device, pageable", "to host, pageable"}; !slices.Equal(names, want) {
		t.Errorf("curves %q", names)
	}
}

// TestSizeText: a size is told as it was given, so that ParseSize reads the same.
func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{1000: "1 KB", 1024: "1.00 KiB", 64 << 20: "64.0 MiB", 1_500_000: "1500 KB", 2e9: "2 GB", 100: "100 B"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
		if back, err := ParseSize(want); err != nil || back != n {
			t.Errorf("%q is read as %d, %v", want, back, err)
		}
	}
}

// TestCopyRefusals: what cannot be copied is refused, with what would do.
func TestCopyRefusals(t *testing.T) {
	for _, c := range []struct {
		CopyConfig
		text, hint string
	}{
		{CopyConfig{Device: "null:h200"}, "no link", "sim:CARD"},
		{CopyConfig{Device: "cpv"}, "cpv", "did you mean cpu?"},
		{CopyConfig{Sizes: []int64{0}}, "a copy of 0 bytes", "1 B"},
		{CopyConfig{Device: "sim:v100-16"}, "7.0; the kernels need 7.5", ""},
		{CopyConfig{Device: "sim:gtx-1650", Sizes: []int64{5 << 30}}, "no room for a copy of 5", "--sizes"},
	} {
		err := RunCopy(t.Context(), c.CopyConfig, func(Row) error { t.Errorf("%+v: a row", c.CopyConfig); return nil })
		var known *advice.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, c.text) || !strings.Contains(known.Hint, c.hint) {
			t.Errorf("%+v: %v, hint %v", c.CopyConfig, err, known)
		}
	}
	for text, want := range map[string]int64{"1KB": 1000, "64KiB": 65536, " 1 MiB ": 1 << 20, "4096": 4096, "1.5g": 3 << 29, "2b": 2} {
		if n, err := ParseSize(text); n != want || err != nil {
			t.Errorf("%q is %d, error %v", text, n, err)
		}
	}
	for _, text := range []string{"", "KB", "-1", "1XB", "NaN", "1e30", "0", "0.1", "100GB"} {
		if n, err := ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}

// BenchmarkOperations times every case of ops at its own size, without PyTorch beside it; what a case spends its time on is
// told by -bench 'Operations/lstm$' -cpu 1 -cpuprofile FILE.
func BenchmarkOperations(b *testing.B) {
	defer par.SetThreads(par.Threads())
	par.SetThreads(runtime.GOMAXPROCS(0))
	for _, c := range operations {
		b.Run(c.Name, func(b *testing.B) {
			env, err := tensor.Fresh("cpu")
			if err != nil {
				b.Fatal(err)
			}
			w, err := c.Make(env, c.Sizes[0], dtype.F32)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				w.Turn()
			}
		})
	}
}
