package tensor_test

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// watch keeps the events of a device.
func watch(t *testing.T, env *tensor.Env, kinds ...device.Kind) func() []*device.Event {
	t.Helper()
	var mu sync.Mutex
	var all []*device.Event
	stop := env.Device().Observe(func(e *device.Event) {
		mu.Lock()
		all = append(all, e.Clone())
		mu.Unlock()
	}, kinds...)
	t.Cleanup(stop)
	return func() []*device.Event {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestEveryKind runs a program that does everything there are events of, and compares with what each engine is said to tell.
// Every event names a line of the program; those with a size have one.
func TestEveryKind(t *testing.T) {
	for _, name := range []string{"cpu", "null:a100-80", "sim:rtx-3090x3:2"} {
		env := fresh(t, name)
		events := watch(t, env)
		everything(t, env)
		all := events()
		if expandable := fresh(t, name); expandable.Device().SetAllocConf("expandable_segments:True") == nil {
			events := watch(t, expandable)
			everything(t, expandable)
			all = append(all, events()...)
		}
		seen := map[string]int{}
		for _, e := range all {
			seen[e.Kind.String()]++
			if line := e.Site.String(); !strings.HasPrefix(line, "observe_test.go:") {
				t.Errorf("%s: %v %s at %s", name, e.Kind, e.What, line)
			}
			if e.Goroutine() == 0 || e.Start <= 0 && e.Took != 0 {
				t.Errorf("%s: %v without goroutine or time", name, e.Kind)
			}
			if info := device.EventKinds()[e.Kind]; info.Bytes && e.Bytes <= 0 {
				t.Errorf("%s: %v of %d bytes at %s", name, e.Kind, e.Bytes, e.Site)
			}
		}
		engine, _, _ := strings.Cut(name, ":")
		for _, k := range device.EventKinds() {
			if said := k.Engines == nil || slices.Contains(k.Engines, engine); said != (seen[k.Name] > 0) {
				t.Errorf("%s: %d events of %s, said to have some: %v", name, seen[k.Name], k.Name, said)
			}
		}
	}
}

func everything(t *testing.T, env *tensor.Env) {
	t.Helper()
	d := env.Device()
	e, end := env.Range("everything")
	defer end()
	model := struct {
		Table *nn.Embedding
		Out   *nn.Linear
	}{nn.NewEmbedding(env, 5, 8), nn.NewLinear(env, 8, 3)}
	opt := optim.NewSGD(nn.Params(&model), optim.SGDConfig{LR: 0.1})
	loss := model.Out.Forward(model.Table.Forward(tensor.From(e, []int64{1, 4}, 2))).Square().Mean()
	loss.Backward()
	opt.Step()
	loss.Item()
	x := e.Ones(100)
	if other := fresh(t, "cpu"); d.Name() != "cpu" {
		x.To(other).To(e)
	}
	x.In(env.On(env.NewQueue())).Neg().Floats()
	env.Sync()
	batch, scope := env.Scope()
	batch.Ones(30 << 20)
	scope.End()
	if err := d.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	d.SetLimit(d.Memory().Used + 1000)
	if _, err := env.Try(func(e *tensor.Env) *tensor.Tensor { return e.Ones(1000) }); err == nil {
		t.Error("beyond the limit")
	}
	d.SetLimit(0)
}

// TestOrigins: what a launch is attributed to: its line, all parameters among its operands, the range, and the recorded
// operation that it is of, forward and backward.
func TestOrigins(t *testing.T) {
	env := fresh(t, "cpu")
	w, b := tensor.NewParam(env.Ones(3, 4)), tensor.NewParam(env.Ones(3))
	w.SetPath("out.weight")
	b.SetPath("out.bias")
	x := env.Ones(2, 4)
	events := watch(t, env, device.KindLaunch, device.KindRange)
	e, end := env.Range("step")
	inner, endInner := x.In(e).Enter("out", nil)
	loss := endInner(inner.Linear(w, b)).Square().Sum()
	loss.Backward()
	end()
	env.Ones(1)
	ranges := map[string]*device.Range{}
	forward := map[string]uint64{}
	backward := map[uint64]int{}
	var last *device.Event
	for _, ev := range events() {
		if ev.Kind == device.KindRange {
			ranges[ev.Range.Name] = ev.Range
			continue
		}
		last = ev
		op := ev.Kernel.Op.Code.String()
		switch {
		case ev.Backward:
			backward[ev.Seq]++
		case ev.Seq > 0:
			forward[op] = ev.Seq
		}
		switch {
		case op == "linear" && !ev.Backward:
			if want := []string{"out.weight", "out.bias"}; !slices.Equal(ev.Paths, want) {
				t.Errorf("the paths are %v, want %v", ev.Paths, want)
			}
			if ev.Range != ranges["out"] || !ev.Range.Within(ranges["step"]) {
				t.Errorf("the range is %+v", ev.Range)
			}
		case op == "sum" && !ev.Backward:
			if ev.Range != ranges["step"] {
				t.Errorf("after the inner range: %+v", ev.Range)
			}
		case ev.Seq > 0 && ev.Seq == forward["linear"] && ev.Range != ranges["out"]:
			t.Errorf("the gradient of linear is in %+v", ev.Range)
		}
	}
	for _, op := range []string{"linear", "mul"} {
		if forward[op] == 0 || backward[forward[op]] == 0 {
			t.Errorf("%s is operation %d, with %d launches of Backward", op, forward[op], backward[forward[op]])
		}
	}
	if last.Range != nil || last.Backward || last.Seq != 0 || last.Paths != nil {
		t.Errorf("after the ranges: %+v", last.Origin)
	}
}

// TestOriginOfWrites: a write in place has the paths of its operands, and the number of what it records.
func TestOriginOfWrites(t *testing.T) {
	env := fresh(t, "cpu")
	w := tensor.NewParam(env.Full(3, 2))
	w.SetPath("w")
	y := env.Ones(2)
	events := watch(t, env, device.KindLaunch)
	y.MulInPlace(w)
	y.Sum().Backward()
	var seq uint64
	products := 0
	for _, e := range events() {
		if e.Kernel.Op.Code.String() != "mul" {
			continue
		}
		if !e.Backward {
			seq = e.Seq
		} else if e.Seq == seq {
			products++
		}
		if !e.Backward && !slices.Equal(e.Paths, []string{"w"}) {
			t.Errorf("the write is of %q", e.Paths)
		}
	}
	if seq == 0 || products == 0 {
		t.Errorf("the write is operation %d, with %d products of Backward", seq, products)
	}
}

// TestOptimizerIsOfAllParameters: a fused update names every parameter.
func TestOptimizerIsOfAllParameters(t *testing.T) {
	env := fresh(t, "cpu")
	var model []*nn.Linear
	for range 20 {
		model = append(model, nn.NewLinear(env, 2, 2))
	}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{})
	x := env.Ones(1, 2)
	for _, l := range model {
		x = l.Forward(x)
	}
	x.Sum().Backward()
	events := watch(t, env, device.KindLaunch, device.KindRelabel)
	opt.Step()
	var names []string
	for name := range nn.Params(model) {
		names = append(names, name)
	}
	states := map[string]int{}
	for _, e := range events() {
		switch {
		case e.Kind == device.KindRelabel && e.What == device.LabelState:
			states[e.Paths[0]]++
		case e.Kind == device.KindLaunch && e.Kernel.Op.Code.String() == "adamw" && !slices.Equal(e.Paths, names):
			t.Errorf("adamw of %v", e.Paths)
		}
	}
	if len(states) != len(names) {
		t.Errorf("states of %v", slices.Sorted(maps.Keys(states)))
	}
	for name, n := range states {
		if n != 2 {
			t.Errorf("%d states of %s", n, name)
		}
	}
}

// TestBlocksApart: under checks an access that leaves a value lands in no other, and memory counts as it does without.
func TestBlocksApart(t *testing.T) {
	space := func(name, setting string) (least, used int64) { // a machine that was not opened before
		t.Setenv("WARPLINE_SIM", setting)
		env := fresh(t, name)
		events := watch(t, env, device.KindAlloc)
		for range 4 {
			env.Zeros(128)
		}
		blocks := events()
		slices.SortFunc(blocks, func(a, b *device.Event) int { return cmp.Compare(a.Mem.Addr, b.Mem.Addr) })
		least = math.MaxInt64
		for i, b := range blocks[1:] {
			least = min(least, int64(b.Mem.Addr-blocks[i].Mem.Addr)-blocks[i].Bytes)
		}
		return least, env.Device().Memory().Used
	}
	plain, used := space("sim:a100-80x6", "check=none")
	checked, usedToo := space("sim:a100-80x7", "check=initcheck")
	if plain != 0 || checked < 4<<10 || used != usedToo {
		t.Errorf("blocks lie %d bytes apart, under checks %d; %d bytes are used, under checks %d", plain, checked, used, usedToo)
	}
}

// TestNobodyWatches: without an observer an operation allocates what it did before there were any.
func TestNobodyWatches(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := env.Ones(8), env.Ones(8)
	add := func() { x.AddInPlace(y) }
	quiet := testing.AllocsPerRun(200, add)
	stop := env.Device().Observe(func(*device.Event) {}, device.KindRange)
	if got := testing.AllocsPerRun(200, add); got != quiet {
		t.Errorf("%v allocations with an observer of other events, %v without", got, quiet)
	}
	stop()
	events := watch(t, env, device.KindLaunch)
	add()
	if len(events()) != 1 {
		t.Errorf("%d launches", len(events()))
	}
}

// TestJoinMakesNoEnv: an operation of values of two scopes allocates what one of values of the same scope does.
func TestJoinMakesNoEnv(t *testing.T) {
	root := fresh(t, "cpu")
	env, scope := root.Scope()
	defer scope.End()
	x, y, z := env.Ones(4), env.Ones(4), root.Ones(4)
	same := testing.AllocsPerRun(500, func() { x.Add(y) })
	if two := testing.AllocsPerRun(500, func() { x.Add(z) }); two > same+0.1 {
		t.Errorf("%v allocations with a value of an outer scope, %v without", two, same)
	}
}
