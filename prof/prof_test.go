package prof_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// engines are the devices that a profile is taken of, and whether they tell times.
var engines = []struct {
	name  string
	timed bool
}{{"cpu", true}, {"sim:h100-80:7", true}, {"null:h100-80", false}}

// counted is what an observer of its own adds up while p's window is open.
type counted struct {
	launches, copies, steps int
	host                    time.Duration // of launches
	flops, bytes            int64
}

func (c *counted) observe(e *device.Event) {
	switch e.Kind {
	case device.KindCopy:
		c.copies++
		c.bytes += e.Bytes
	case device.KindLaunch, device.KindFill:
		c.steps++
		if e.Step == 0 {
			c.launches++
			c.host += e.Took
			c.flops += e.Kernel.FLOPs
			c.bytes += e.Kernel.Bytes
		}
	}
}

// profiled trains a small network for some steps, and returns what the third and the fourth were.
func profiled(t *testing.T, name string, cfg prof.Config) (*prof.Profile, *counted) {
	t.Helper()
	env, err := tensor.Fresh(name)
	if err != nil {
		t.Fatal(err)
	}
	m := model.NewMLP(env, model.Digits, 16)
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-3})
	p := prof.New(cfg)
	seen := new(counted)
	for i := range 6 {
		if i == 2 {
			t.Cleanup(env.Device().Observe(seen.observe, device.KindLaunch, device.KindFill, device.KindCopy))
		}
		kept := *seen
		step(env.Profiled(p), m, opt)
		if i > 3 {
			*seen = kept
		}
		p.Step()
	}
	p.Stop()
	if p.Last() == nil || p.Last().Err != nil {
		t.Fatalf("%s: profile %v", name, p.Last())
	}
	return p.Last(), seen
}

func step(env *tensor.Env, m nn.Sequential, opt optim.Optimizer) {
	env.Do(func(env *tensor.Env) *tensor.Tensor {
		var loss *tensor.Tensor
		prof.Range(env, "a batch", func(env *tensor.Env) {
			x, y := tensor.From(env, make([]float32, 4*784), 4, 1, 28, 28), tensor.From(env, []int64{1, 2, 3, 4}, 4)
			loss = nn.CrossEntropy(m.Forward(x), y)
		})
		loss.Backward()
		opt.Step()
		return loss
	})
}

var window = prof.Config{Wait: 1, Warmup: 1, Active: 2, Repeat: 1}

// TestTotals: whatever rows are of, they add up to what another observer saw in the same steps.
func TestTotals(t *testing.T) {
	for _, engine := range engines {
		p, want := profiled(t, engine.name, window)
		if p.Devices[0].Timed != engine.timed {
			t.Errorf("%s: timed %v", engine.name, p.Devices[0].Timed)
		}
		all := p.Summary()
		for by := prof.Op; by <= prof.Kernel; by++ {
			var sum prof.Row
			for _, r := range p.Rows(by) {
				sum.Calls += r.Calls
				sum.Self += r.Self
				sum.Host += r.Host
				sum.Bytes += r.Bytes
				sum.FLOPs += r.FLOPs
				if r.Total < r.Self {
					t.Errorf("%s by %v: %s has a total of %v below itself, %v", engine.name, by, r.Name, r.Total, r.Self)
				}
			}
			calls := want.launches + want.copies
			if by == prof.Kernel {
				calls = want.steps + want.copies
			}
			if sum.Calls != calls || sum.FLOPs != want.flops || sum.Bytes != want.bytes {
				t.Errorf("%s by %v: %d calls, %d FLOP, %d bytes; want %d, %d, %d", engine.name, by, sum.Calls, sum.FLOPs, sum.Bytes, calls, want.flops, want.bytes)
			}
			if sum.Self != all.Sum || engine.timed != (sum.Self > 0) {
				t.Errorf("%s by %v: rows of %v, all work %v", engine.name, by, sum.Self, all.Sum)
			}
		}
		if all.Steps != 2 || all.Busy > all.Sum || all.Busy+all.Idle != all.Took {
			t.Errorf("%s: %+v", engine.name, all)
		}
		if engine.name == "cpu" && all.Sum-want.host < 0 {
			t.Errorf("on the CPU work takes what its launches do, %v, not %v", want.host, all.Sum)
		}
	}
}

// TestModules: what layers do is theirs, forward and backward, and counts for the range around them.
func TestModules(t *testing.T) {
	p, _ := profiled(t, "cpu", window)
	rows := map[string]prof.Row{}
	for _, r := range p.Rows(prof.Module) {
		rows[r.Name] = r
	}
	if r := rows["1"]; r.Calls != 2*3 || r.Op == "" { // linear, and the gradients of its weight and bias
		t.Errorf("the first layer: %+v", r)
	}
	if batch := rows["a batch"]; batch.Total <= rows["1"].Total || batch.Total <= batch.Self {
		t.Errorf("the range around the layers: %+v, the first layer %+v", batch, rows["1"])
	}
}

// TestOffCostsNothing: outside of windows nobody observes.
func TestOffCostsNothing(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	p := prof.New(prof.Config{Skip: 1, Active: 1, Repeat: 1})
	env.Profiled(p)
	for i, want := range []bool{false, true, false, false} {
		if env.Device().Ranged() != want {
			t.Errorf("step %d: observed %v", i, !want)
		}
		env.Ones(3)
		p.Step()
	}
	p.Stop()
	if got := p.Last().Summary().Calls; got != 1 {
		t.Errorf("%d launches in the second step", got)
	}
}

func TestReady(t *testing.T) {
	var windows []int
	p := prof.New(prof.Config{Wait: 1, Active: 2, Ready: func(p *prof.Profile) { windows = append(windows, p.Summary().Calls) }})
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	env.Profiled(p)
	for i := range 8 {
		for range i {
			env.Ones(1)
		}
		p.Step()
	}
	p.Stop()
	p.Stop()
	p.Step()
	if want := []int{1 + 2, 4 + 5, 7}; !slices.Equal(windows, want) {
		t.Errorf("windows of %v launches, want %v", windows, want)
	}
}

func TestDropped(t *testing.T) {
	cfg := window
	cfg.Events = 10
	p, _ := profiled(t, "cpu", cfg)
	var b bytes.Buffer
	if err := p.WriteTable(&b, prof.Table{}); err != nil || p.Dropped == 0 || !strings.Contains(b.String(), fmt.Sprintf("%d events came after the first 10", p.Dropped)) {
		t.Errorf("%d dropped, error %v:\n%s", p.Dropped, err, b.String())
	}
}

func TestTable(t *testing.T) {
	p, _ := profiled(t, "cpu", window)
	var b bytes.Buffer
	if err := p.WriteTable(&b, prof.Table{Sort: "shelf"}); err == nil || !strings.Contains(err.Error(), "self") || b.Len() > 0 {
		t.Errorf("error %v, text %q", err, b.String())
	}
	for _, name := range prof.Columns() {
		b.Reset()
		if err := p.WriteTable(&b, prof.Table{By: prof.Line, Sort: name, Top: 2, Explain: true, Width: 200}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"prof_test.go:", name, "and 2 more", "busy"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("sorted by %s, without %q:\n%s", name, want, b.String())
			}
		}
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []prof.Config{{Wait: -1, Active: 1}, {Warmup: 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken", cfg)
				}
			}()
			prof.New(cfg)
		}()
	}
}

// TestPprof: another reader's sums are the profiler's, to the nanosecond.
func TestPprof(t *testing.T) {
	for _, engine := range engines {
		p, want := profiled(t, engine.name, window)
		for path, write := range map[string]func(string) error{"device.pb.gz": p.WritePprof, "host.pb.gz": p.WriteHostPprof} {
			file := filepath.Join(t.TempDir(), path)
			if err := write(file); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			read, err := profile.ParseData(data)
			if err != nil {
				t.Fatal(err)
			}
			if err := read.CheckValid(); err != nil {
				t.Error(err)
			}
			sums := make([]int64, len(read.SampleType))
			for _, s := range read.Sample {
				for i, v := range s.Value {
					sums[i] += v
				}
				if !strings.Contains(fmt.Sprint(s.Location[1].Line[0].Function.Name, s.Location[len(s.Location)-1].Line[0].Function.Name), "warpline") {
					t.Errorf("%s: a sample of %s without the calls to it", engine.name, s.Location[0].Line[0].Function.Name)
				}
			}
			var host time.Duration
			for _, r := range p.Rows(prof.Op) {
				host += r.Host
			}
			wanted := []int64{int64(p.Summary().Sum), int64(want.launches + want.copies), want.bytes, want.flops}
			if path == "host.pb.gz" {
				wanted = []int64{int64(host), wanted[1]}
				if engine.name == "cpu" {
					wanted[1] = 0
				}
			}
			if !slices.Equal(sums, wanted) {
				t.Errorf("%s, %s: %v, want %v", engine.name, path, sums, wanted)
			}
		}
	}
}

// span is an event of a trace, as a reader sees it.
type span struct {
	Ph, Cat, Name string
	PID, TID      json.RawMessage
	TS, Dur       float64
	ID            int
	Args          map[string]any
}

func readTrace(t *testing.T, p *prof.Profile) (events []span) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.json.gz")
	if err := p.WriteTrace(file); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		SchemaVersion int
		TraceEvents   []span
		TraceName     string
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.SchemaVersion != 1 || doc.TraceName != "trace.json.gz" {
		t.Errorf("schema %d, name %q", doc.SchemaVersion, doc.TraceName)
	}
	return doc.TraceEvents
}

// TestTrace: rows nest, every kernel and copy has its call and the arrow from it, times add up, gradients have arrows.
func TestTrace(t *testing.T) {
	for _, engine := range engines {
		p, want := profiled(t, engine.name, window)
		rows := map[string][]span{}
		starts, ends, gradients := map[int]int{}, map[int]int{}, 0
		calls, work := map[int]int{}, map[int]int{}
		var busy float64
		ops, steps := 0, 0
		for _, e := range readTrace(t, p) {
			switch {
			case e.Ph == "s" && e.Name == "ac2g":
				starts[e.ID]++
			case e.Ph == "f" && e.Name == "ac2g":
				ends[e.ID]++
			case e.Ph == "f" && e.Name == "fwdbwd":
				gradients++
			case e.Ph == "X":
				rows[string(e.PID)+" "+string(e.TID)] = append(rows[string(e.PID)+" "+string(e.TID)], e)
			}
			switch e.Cat {
			case "cpu_op":
				ops++
			case "user_annotation":
				if strings.HasPrefix(e.Name, "ProfilerStep#") {
					steps++
				}
			case "cuda_runtime":
				calls[int(e.Args["correlation"].(float64))]++
			case "kernel", "gpu_memcpy", "gpu_memset":
				work[int(e.Args["correlation"].(float64))]++
				busy += e.Dur
				if e.Args["stream"] == nil {
					t.Errorf("%s: %s has no stream", engine.name, e.Name)
				}
			}
		}
		for row, spans := range rows {
			nested(t, engine.name+" row "+row, spans)
		}
		if ops != want.launches+want.copies || steps != 2 || gradients == 0 {
			t.Errorf("%s: %d operations, %d steps, %d gradients; want %d operations", engine.name, ops, steps, gradients, want.launches+want.copies)
		}
		if engine.name != "sim:h100-80:7" {
			if len(work) > 0 {
				t.Errorf("%s: %d pieces of work of a device that tells none", engine.name, len(work))
			}
			continue
		}
		if len(work) != want.steps+want.copies || fmt.Sprintf("%.2f", busy) != fmt.Sprintf("%.2f", float64(p.Summary().Sum)/1e3) {
			t.Errorf("%s: %d pieces of work for %f µs, want %d for %v", engine.name, len(work), busy, want.steps+want.copies, p.Summary().Sum)
		}
		for id, n := range work {
			if n != 1 || calls[id] != 1 || starts[id] != 1 || ends[id] != 1 {
				t.Errorf("%s: correlation %d: %d works, %d calls, arrows %d to %d", engine.name, id, n, calls[id], starts[id], ends[id])
			}
		}
	}
}

// nested fails unless slices of a row lie apart or one in another, but for the thousandths that times are rounded to.
func nested(t *testing.T, row string, spans []span) {
	t.Helper()
	slices.SortStableFunc(spans, func(a, b span) int {
		switch {
		case a.TS != b.TS:
			return map[bool]int{true: -1, false: 1}[a.TS < b.TS]
		case a.Dur != b.Dur:
			return map[bool]int{true: -1, false: 1}[a.Dur > b.Dur]
		}
		return 0
	})
	var open []span
	for _, s := range spans {
		for len(open) > 0 && open[len(open)-1].TS+open[len(open)-1].Dur < s.TS+0.0015 {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			if o := open[len(open)-1]; s.TS+s.Dur > o.TS+o.Dur+0.0025 {
				t.Errorf("%s: %s of %f to %f overlaps %s of %f to %f", row, s.Name, s.TS, s.TS+s.Dur, o.Name, o.TS, o.TS+o.Dur)
			}
		}
		open = append(open, s)
	}
}

// TestSameTrace: on a simulated GPU the host's clock is the model's too, so that two runs leave the same trace; and a kernel begins
// once its call has reached the card.
func TestSameTrace(t *testing.T) {
	var first string
	var p *prof.Profile
	for i := range 2 {
		p, _ = profiled(t, "sim:h100-80:7", window)
		var b bytes.Buffer
		if err := p.Trace(&b, "trace.json"); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = b.String()
			continue
		}
		for j, line := range strings.Split(b.String(), "\n") {
			if other := strings.Split(first, "\n"); j >= len(other) || other[j] != line {
				t.Fatalf("line %d:\n%s\nand before\n%s", j, line, other[min(j, len(other)-1)])
			}
		}
	}
	calls := map[int]float64{}
	events := readTrace(t, p)
	for _, e := range events {
		if e.Cat == "cuda_runtime" {
			calls[int(e.Args["correlation"].(float64))] = e.TS
		}
	}
	for _, e := range events {
		if id, ok := e.Args["correlation"]; ok && e.Cat != "cuda_runtime" && e.TS < calls[int(id.(float64))] {
			t.Errorf("%s begins at %f, before its call at %f", e.Name, e.TS, calls[int(id.(float64))])
		}
	}
}
