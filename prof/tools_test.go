package prof_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// pprofSums runs go tool pprof on a profile, and returns the total that it shows and the sum of the flat column of its top.
func pprofSums(t *testing.T, file, sample string) (total, flat int64) {
	t.Helper()
	args := []string{"tool", "pprof", "-sample_index=" + sample, "-unit=ns", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0"}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(strings.TrimSuffix(s, "ns"), 10, 64)
		if err != nil {
			t.Fatalf("pprof: %v", err)
		}
		return n
	}
	for _, view := range []string{"-top", "-peek=."} {
		out, err := exec.Command("go", append(args, view, file)...).Output()
		if err != nil {
			t.Fatalf("go tool pprof: %v", err)
		}
		m := regexp.MustCompile(`100% of (\d+(?:ns)?) total`).FindSubmatch(out)
		if m == nil {
			t.Fatalf("go tool pprof %s:\n%s", view, out)
		}
		if shown := number(string(m[1])); view == "-top" {
			total = shown
		} else if shown != total {
			t.Errorf("%s: -top has %d, -peek %d", sample, total, shown)
		}
		if view != "-top" {
			continue
		}
		_, table, _ := strings.Cut(string(out), "cum%\n")
		for line := range strings.Lines(table) {
			flat += number(strings.Fields(line)[0])
		}
	}
	return total, flat
}

// asksPprof reports whether a run asks Go's own tool, as one in four does: where nobody has used it, compiling it takes longer than all
// other tests here.
func asksPprof(t *testing.T) bool {
	return testutil.NewSpread(t, testutil.Seed(t), 4).Takes("go tool pprof")
}

// TestGoToolPprof: what Go's own tool shows is the profiler's totals, to the unit.
func TestGoToolPprof(t *testing.T) {
	if !asksPprof(t) {
		t.Skip("a run in four asks the tool, and all do with " + testutil.WalkEnv + "=all")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	p, want := profiled(t, "sim:h100-80:7", window)
	file := filepath.Join(t.TempDir(), "device.pb.gz")
	if err := p.WritePprof(file); err != nil {
		t.Fatal(err)
	}
	for sample, n := range map[string]int64{"device": int64(p.Summary().Sum), "calls": int64(want.launches + want.copies)} {
		if total, flat := pprofSums(t, file, sample); total != n || flat != n {
			t.Errorf("%s: total %d, sum of the rows %d; want %d", sample, total, flat, n)
		}
	}
}

// TestTwoProfilers: two of them on an env, or on two envs of a device, see the same work, and either may end first.
func TestTwoProfilers(t *testing.T) {
	for _, engine := range engines {
		env, err := tensor.Fresh(engine.name)
		if err != nil {
			t.Fatal(err)
		}
		twoProfilers(t, engine.name, engine.timed, env, env)
		twoProfilers(t, engine.name, engine.timed, env.Train(), env.Seed(1))
	}
}

func twoProfilers(t *testing.T, name string, timed bool, env, other *tensor.Env) {
	a, b := prof.New(prof.Config{}), prof.New(prof.Config{Skip: 1, Active: 1, Repeat: 1})
	env.Profiled(a)
	other.Profiled(b)
	for range 3 {
		env.Ones(8).Exp()
		a.Step()
		b.Step()
	}
	b.Stop()
	env.Ones(8).Exp()
	a.Stop()
	if all, one := a.Last().Summary(), b.Last().Summary(); all.Calls != 4*one.Calls || one.Calls == 0 || timed != (one.Sum > 0) {
		t.Errorf("%s: %d launches in four steps, %d in one of them for %v", name, all.Calls, one.Calls, one.Sum)
	}
}

// TestWindowBeyondRun: a window that the run ends in has the steps that there were.
func TestWindowBeyondRun(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	p := prof.New(prof.Config{Warmup: 1, Active: 100})
	env.Profiled(p)
	for range 3 {
		env.Ones(8)
		p.Step()
	}
	p.Stop()
	if s := p.Last().Summary(); s.Calls != 2 {
		t.Errorf("%+v", s)
	}
	if says(t, p.Last(), "Warmup") {
		t.Error("a window after a step of warm-up is said to lack it")
	}
	p = prof.New(prof.Config{})
	env.Profiled(p)
	env.Ones(8)
	p.Stop()
	if !says(t, p.Last(), "Warmup") {
		t.Error("a window without warm-up does not say so")
	}
	p = prof.New(prof.Config{Wait: 10, Active: 1})
	env.Profiled(p)
	p.Stop()
	if p.Last() != nil {
		t.Errorf("a window that never began: %+v", p.Last())
	}
}

// TestTensorBoard: the file has the name that readers look for, and is a trace.
func TestTensorBoard(t *testing.T) {
	p, _ := profiled(t, "sim:h100-80:7", window)
	dir := filepath.Join(t.TempDir(), "runs", "one")
	path, err := p.WriteTensorBoard(dir, "host_1")
	if err != nil || !regexp.MustCompile(`^host_1\.\d+\.pt\.trace\.json\.gz$`).MatchString(filepath.Base(path)) || filepath.Dir(path) != dir {
		t.Fatalf("%s, %v", path, err)
	}
	if _, err := p.WriteTensorBoard(dir, "a/b"); err == nil {
		t.Error("a worker with a slash")
	}
	kernels := 0
	for _, e := range readTrace(t, p) {
		if e.Cat != "kernel" {
			continue
		}
		kernels++
		for _, key := range []string{"stream", "grid", "block", "shared memory", "registers per thread", "blocks per SM", "warps per SM", "est. achieved occupancy %", "correlation"} {
			if e.Args[key] == nil {
				t.Errorf("%s has no %s", e.Name, key)
			}
		}
	}
	if kernels == 0 {
		t.Error("no kernels")
	}
}

// says reports whether a table has a word.
func says(t *testing.T, p *prof.Profile, word string) bool {
	t.Helper()
	var b strings.Builder
	if err := p.WriteTable(&b, prof.Table{}); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(b.String(), word)
}

// TestMemoryOfTrace: counters follow the allocator's, from the window's beginning to its end, and each block that is handed out is let go or
// held at the end, on every engine.
func TestMemoryOfTrace(t *testing.T) {
	for _, engine := range engines {
		env, err := tensor.Fresh(engine.name)
		if err != nil {
			t.Fatal(err)
		}
		x := env.Ones(1000)
		p := prof.New(prof.Config{Memory: true})
		env.Profiled(p)
		before := env.Device().Memory()
		env.Do(func(env *tensor.Env) *tensor.Tensor { x.In(env).Exp().Exp(); return nil })
		kept := env.Ones(3 << 20)
		during := env.Device().Memory()
		p.Stop()
		runtime.KeepAlive(kept)
		file := filepath.Join(t.TempDir(), "profile.json")
		if err := p.Last().Write(file); err != nil {
			t.Fatal(err)
		}
		read, err := prof.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		var counters []map[string]any
		held, blocks := 0.0, 0
		for _, e := range readTrace(t, read) {
			switch {
			case e.Ph == "C":
				counters = append(counters, e.Args)
			case e.Name == "[memory]":
				blocks++
				held += e.Args["Bytes"].(float64)
				if last := counters[len(counters)-1]; last["allocated"].(float64)+e.Args["Bytes"].(float64) != e.Args["Total Allocated"].(float64) {
					t.Errorf("%s: %v after %v", engine.name, e.Args, last)
				}
			}
		}
		if blocks < 5 || int64(held) != during.Allocated.Current-before.Allocated.Current {
			t.Errorf("%s: %d blocks change hands for %v bytes in all; want %d", engine.name, blocks, held, during.Allocated.Current-before.Allocated.Current)
		}
		for i, want := range map[int]tensor.Memory{0: before, len(counters) - 1: during} {
			if c := counters[i]; int64(c["allocated"].(float64)) != want.Allocated.Current || int64(c["reserved"].(float64)) != want.Reserved.Current {
				t.Errorf("%s: counters %d are %v, the allocator's %v", engine.name, i, c, want)
			}
		}
	}
}

// TestTwoDevices: one profiler keeps the work of two devices apart, each with its own ranges, lines and times.
func TestTwoDevices(t *testing.T) {
	p := prof.New(prof.Config{})
	for i, name := range []string{"cpu", "sim:h100-80:7", "sim:a100-80:3"} {
		env, err := tensor.Fresh(name)
		if err != nil {
			t.Fatal(err)
		}
		prof.Range(env.Profiled(p), name, func(env *tensor.Env) {
			for range i + 1 {
				x := env.Ones(8)
				[]func() *tensor.Tensor{x.Exp, x.Log, x.Sqrt}[i]()
			}
		})
	}
	p.Stop()
	rows := map[string]prof.Row{}
	for _, by := range []prof.By{prof.Op, prof.Module} {
		for _, r := range p.Last().Rows(by) {
			rows[r.Name] = r
		}
	}
	for i, op := range []string{"exp", "log", "sqrt"} {
		name := p.Last().Devices[i].Name
		if r := rows[op]; r.Calls != i+1 || r.Self <= 0 {
			t.Errorf("%s of %s: %+v", op, name, r)
		}
		if r := rows[name]; r.Calls != 2*(i+1) || r.Self <= rows[op].Self {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestOddShapes: a window with a smaller last batch says so, and one of equal steps does not.
func TestOddShapes(t *testing.T) {
	for _, last := range []int{32, 5} {
		env, err := tensor.Fresh("cpu")
		if err != nil {
			t.Fatal(err)
		}
		p := prof.New(prof.Config{Warmup: 1, Active: 4, Repeat: 1})
		env.Profiled(p)
		for _, rows := range []int{9, 32, 32, 32, last} {
			env.Ones(rows, 8).Exp()
			p.Step()
		}
		if want := last != 32; says(t, p.Last(), "step 4 ran exp f32[5,8]") != want || says(t, p.Last(), "do not compare") != want {
			t.Errorf("a last batch of %d:", last)
			p.Last().WriteTable(os.Stderr, prof.Table{})
		}
	}
}
