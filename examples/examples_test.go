package examples

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

var turns = flag.Int("turns", 2000, "turns of the memory test")

func fresh(t *testing.T, device string) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func each(t *testing.T, f func(t *testing.T, name string, p Program)) {
	for name, p := range Programs {
		t.Run(name, func(t *testing.T) { f(t, name, p) })
	}
}

// TestOutput runs every program to the output that it is documented with.
func TestOutput(t *testing.T) {
	each(t, func(t *testing.T, name string, p Program) {
		env := fresh(t, "cpu")
		if err := env.Device().Poison(true); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := p(env, 300, &out); err != nil {
			t.Fatal(err)
		}
		testutil.Golden(t, filepath.Join("testdata", name+".txt"), out.Bytes())
	})
}

// TestNullDevice runs every program on a device without arithmetic. Programs that decide by values go another way there,
// but none fails.
func TestNullDevice(t *testing.T) {
	each(t, func(t *testing.T, name string, p Program) {
		var out bytes.Buffer
		if err := p(fresh(t, "null:a100-80"), 5, &out); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnyDeviceNeedsTheSameMemory(t *testing.T) {
	var outs [2]bytes.Buffer
	for i, name := range []string{"cpu", "null:a100-80"} {
		if err := AnyDevice(fresh(t, name), 5, &outs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if outs[0].String() != outs[1].String() {
		t.Errorf("cpu says %q, null says %q", &outs[0], &outs[1])
	}
}

// TestMistakeInARange: what is wrong with a model is told of the program's line, and not of the iterator's.
func TestMistakeInARange(t *testing.T) {
	env := fresh(t, "cpu")
	type net struct{ hidden *nn.Linear }
	m := &net{nn.NewLinear(env, 1, 1)}
	for name, f := range map[string]func(){
		"Params": func() {
			for range nn.Params(m) {
			}
		},
		"Buffers": func() {
			for range nn.Buffers(m) {
			}
		},
		"State": func() {
			for range nn.State(m) {
			}
		},
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
			f()
			return nil
		})
		if e := (*tensor.Error)(nil); !errors.As(err, &e) || !strings.HasPrefix(e.Line, "examples_test.go:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// counter is a writer that runs a function; programs write once, at their end.
type counter func()

func (c counter) Write(p []byte) (int, error) { c(); return len(p), nil }

// TestFlatMemory compares what is in use at the end of a run of 20 turns with the end of one of 2,000, or of 200 where a run takes a part.
func TestFlatMemory(t *testing.T) {
	n := *turns
	spread := testutil.NewSpread(t, testutil.Seed(t), 2)
	each(t, func(t *testing.T, name string, p Program) {
		n := n
		if testing.Short() || !spread.Takes(name) {
			n = min(n, 200)
		}
		env := fresh(t, "cpu")
		if err := env.Device().Poison(true); err != nil {
			t.Fatal(err)
		}
		used := func(steps int) (m tensor.Memory) {
			if err := p(env, steps, counter(func() { m = env.Device().Memory() })); err != nil {
				t.Fatal(err)
			}
			env.Device().Collect() // the models of the run go
			return m
		}
		used(20) // workers, pages and buffers that stay
		early, rss := used(20), resident()
		late := used(n)
		if late.Used != early.Used || late.Allocated.Current != early.Allocated.Current {
			t.Errorf("%d bytes used after %d turns, %d after 20", late.Used, n, early.Used)
		}
		if late.Scopes != early.Scopes {
			t.Errorf("%d scopes open after %d turns, %d after 20", late.Scopes, n, early.Scopes)
		}
		// What a process takes once and keeps, such as the race detector's memory for each of many threads, may come late.
		// What leaks comes again.
		var grown [2]int
		for i := range grown {
			if grown[i] = resident() - rss; rss == 0 || grown[i] <= max(16<<20, rss/50) {
				return
			}
			rss += grown[i]
			used(n)
		}
		t.Errorf("resident memory grew by %d bytes in %d turns, and by %d in as many again", grown[0], n, grown[1])
	})
}

// resident is the process's resident memory in bytes, 0 where the system does not tell.
func resident() int {
	runtime.GC()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var pages int
	for i, f := range strings.Fields(string(data)) {
		if i == 1 {
			for _, c := range f {
				pages = pages*10 + int(c-'0')
			}
		}
	}
	return pages * os.Getpagesize()
}
