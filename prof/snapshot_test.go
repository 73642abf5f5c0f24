package prof_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/pickle"
	"github.com/warpline-ml/warpline/internal/snapshot"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// dict and list are parts of a snapshot.
type dict map[string]any

func (d dict) list(key string) (all []dict) {
	for _, x := range d[key].(*pickle.ReadList).Items {
		all = append(all, dict(x.(*pickle.ReadDict).Map()))
	}
	return all
}

func (d dict) int(key string) int64   { return d[key].(int64) }
func (d dict) text(key string) string { return d[key].(string) }

// read is the snapshot that h has now.
func read(t *testing.T, h *prof.History) dict {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	if err := h.WriteSnapshot(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v, err := pickle.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return dict(v.(*pickle.ReadDict).Map())
}

// replayed is the memory of a device as a trace tells it, by address.
type replayed struct {
	segments map[int64]int64
	mapped   map[int64]int64 // ranges of expandable segments, no two of which touch
	blocks   map[int64]int64 // size
	waiting  map[int64]bool  // of blocks
}

// of is the state that a snapshot ends in.
func of(device int, s dict) *replayed {
	r := &replayed{map[int64]int64{}, map[int64]int64{}, map[int64]int64{}, map[int64]bool{}}
	for _, seg := range s.list("segments") {
		if seg.int("device") != int64(device) {
			continue
		}
		if seg["is_expandable"].(bool) {
			_ = r.cover(seg.int("address"), seg.int("total_size")) // which fails where two lie over each other: adds says so
		} else {
			r.segments[seg.int("address")] = seg.int("total_size")
		}
		for _, b := range seg.list("blocks") {
			if state := b.text("state"); state != "inactive" {
				r.blocks[b.int("address")] = b.int("size")
				if state == "active_pending_free" {
					r.waiting[b.int("address")] = true
				}
			}
		}
	}
	return r
}

// step goes over an event, or back over it; what the state before it cannot be is an error.
func (r *replayed) step(e dict, back bool) error {
	if slices.Contains([]string{"oom", "snapshot"}, e.text("action")) {
		return nil
	}
	addr, size := e.int("addr"), e.int("size")
	change := func(m map[int64]int64, add bool) error {
		have, ok := m[addr]
		if add && ok || !add && (!ok || have != size) {
			return fmt.Errorf("%s of %d bytes at %#x (back: %v), where %d are (%v)", e.text("action"), size, addr, back, have, ok)
		}
		if delete(m, addr); add {
			m[addr] = size
		}
		return nil
	}
	switch e.text("action") {
	case "segment_alloc":
		return change(r.segments, !back)
	case "segment_free":
		return change(r.segments, back)
	case "segment_map", "segment_unmap":
		if (e.text("action") == "segment_map") != back {
			return r.cover(addr, size)
		}
		return r.uncover(addr, size)
	case "alloc":
		return cmp.Or(r.free(addr, e), change(r.blocks, !back), r.inside(addr, size))
	case "free_requested":
		if r.waiting[addr] != back || r.blocks[addr] != size {
			return fmt.Errorf("free of %d bytes at %#x (back: %v), of %d: %v", size, addr, back, r.blocks[addr], r.waiting[addr])
		}
		r.waiting[addr] = !back
	case "free_completed":
		if r.waiting[addr] == back {
			return fmt.Errorf("free completed at %#x (back: %v): %v", addr, back, r.waiting[addr])
		}
		r.waiting[addr] = back
		return change(r.blocks, back)
	default:
		return fmt.Errorf("action %s", e.text("action"))
	}
	return nil
}

// cover maps a range, of which nothing may be mapped.
func (r *replayed) cover(addr, size int64) error {
	for at, n := range r.mapped {
		if addr < at+n && at < addr+size {
			return fmt.Errorf("%d bytes at %#x are mapped where %d at %#x are", size, addr, n, at)
		}
		if at+n == addr || addr+size == at {
			delete(r.mapped, at)
			addr, size = min(addr, at), size+n
		}
	}
	r.mapped[addr] = size
	return nil
}

// uncover unmaps a range, all of which must be mapped and free.
func (r *replayed) uncover(addr, size int64) error {
	for at, n := range r.blocks {
		if at < addr+size && addr < at+n {
			return fmt.Errorf("%d bytes at %#x are unmapped under a block at %#x", size, addr, at)
		}
	}
	for at, n := range r.mapped {
		if at > addr || addr+size > at+n {
			continue
		}
		delete(r.mapped, at)
		if at < addr {
			r.mapped[at] = addr - at
		}
		if rest := at + n - addr - size; rest > 0 {
			r.mapped[addr+size] = rest
		}
		return nil
	}
	return fmt.Errorf("%d bytes at %#x are unmapped, where not all is mapped", size, addr)
}

// free reports a block that waits when it is handed out.
func (r *replayed) free(addr int64, e dict) error {
	if r.waiting[addr] {
		return fmt.Errorf("%s at %#x, which waits", e.text("action"), addr)
	}
	return nil
}

// inside reports a block that lies in no segment, or over another block.
func (r *replayed) inside(addr, size int64) error {
	within := false
	for _, of := range []map[int64]int64{r.segments, r.mapped} {
		for at, n := range of {
			within = within || addr >= at && addr+size <= at+n
		}
	}
	for at, n := range r.blocks {
		if at != addr && at < addr+size && addr < at+n {
			return fmt.Errorf("a block at %#x over one at %#x", addr, at)
		}
	}
	if !within {
		return fmt.Errorf("a block at %#x in no segment", addr)
	}
	return nil
}

func (r *replayed) equal(o *replayed) bool {
	pending := func(m map[int64]bool) []int64 {
		var all []int64
		for at, waits := range m {
			if waits {
				all = append(all, at)
			}
		}
		slices.Sort(all)
		return all
	}
	return maps.Equal(r.segments, o.segments) && maps.Equal(r.mapped, o.mapped) && maps.Equal(r.blocks, o.blocks) && slices.Equal(pending(r.waiting), pending(o.waiting))
}

// train runs steps of a small GPT, with memory that other queues use, a collection of the cache and an allocation that fails.
func train(t *testing.T, env *tensor.Env, steps int) {
	t.Helper()
	g := model.NewGPT(env, small)
	opt := optim.NewAdamW(nn.Params(g), optim.AdamWConfig{})
	side := env.On(env.NewQueue())
	for i := range steps {
		e, scope := env.Scope(uint64(i))
		tokens := labels(e, 2, 16)
		g.Loss(tokens, tokens).Backward()
		opt.Step()
		e.Ones(1000).In(side).Neg()
		if i == 1 {
			e.Ones(30 << 20)
			if _, err := e.Try(func(e *tensor.Env) *tensor.Tensor { return e.Ones(1 << 45) }); err == nil {
				t.Error("more than there is")
			}
		}
		scope.End()
		if err := env.Device().EmptyCache(); i == 1 && err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshot: the file's segments are the allocator's to the byte, and its events lead there: forwards from nothing where
// the history is whole; backwards, and then forwards again, where it begins in the middle or the ring has lost the first. So it
// is with segments that grow and shrink, and with a step that is captured, in memory of its own. A run takes a quarter of these.
func TestSnapshot(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 4)
	for _, name := range []string{"cpu", "null:a100-80", "sim:a100-80:3"} {
		for _, c := range []struct {
			name   string
			before int // steps
			cfg    prof.HistoryConfig
			conf   string
			train  func(t *testing.T, env *tensor.Env, steps int)
			failed bool // an allocation
		}{
			{"whole", 0, prof.HistoryConfig{}, "", train, true},
			{"from the middle", 2, prof.HistoryConfig{Stacks: true}, "", train, true},
			{"a ring", 1, prof.HistoryConfig{Events: 300}, "", train, true},
			{"expandable", 0, prof.HistoryConfig{}, "expandable_segments:True", train, true},
			{"expandable, a ring", 1, prof.HistoryConfig{Events: 300}, "expandable_segments:True", train, true},
			{"captured", 0, prof.HistoryConfig{}, "", captured, false},
			{"captured, expandable, from the middle", 1, prof.HistoryConfig{}, "expandable_segments:True", captured, false},
		} {
			if name == "cpu" && c.conf != "" || !spread.Takes(name+", "+c.name) {
				continue
			}
			t.Run(name+", "+c.name, func(t *testing.T) {
				env := open(t, name)
				if err := env.Device().SetAllocConf(c.conf); err != nil {
					t.Fatal(err)
				}
				if c.before > 0 {
					c.train(t, env, c.before)
				}
				h := prof.NewHistory(c.cfg)
				env.Profiled(h).Profiled(h)
				c.train(t, env, 3)
				s := read(t, h)
				adds(t, s, env)
				trace := dict{"trace": s["device_traces"].(*pickle.ReadList).Items[0]}.list("trace")
				if n := len(trace); n < 200 || c.cfg.Events > 0 && n > c.cfg.Events+1 {
					t.Errorf("%d events", n)
				}
				if c.cfg.Events == 0 {
					has(t, trace, c.conf != "", c.failed)
				}
				leads(t, s, trace, c.cfg.Events == 0 && c.before == 0)
				described(t, s, trace, c.cfg)
				h.Stop()
				stopped := len(trace)
				env.Ones(5)
				if again := (dict{"trace": read(t, h)["device_traces"].(*pickle.ReadList).Items[0]}).list("trace"); len(again) != stopped && c.cfg.Events == 0 {
					t.Errorf("%d events, %d before Stop", len(again), stopped)
				}
			})
		}
	}
}

// has checks that a trace has pages that come and go, instead of segments, or segments; and an allocation that failed.
func has(t *testing.T, trace []dict, pages, failed bool) {
	t.Helper()
	count := map[string]int{}
	for _, e := range trace {
		count[e.text("action")]++
	}
	if (count["segment_map"] > 0) != pages || (count["segment_unmap"] > 0) != pages || (count["segment_alloc"] > 0) == pages || (count["oom"] > 0) != failed {
		t.Errorf("%v", count)
	}
}

// leads goes over a trace from the end of a snapshot back to its beginning, which is empty where it is whole, and to the end.
func leads(t *testing.T, s dict, trace []dict, whole bool) {
	t.Helper()
	end, now := of(0, s), of(0, s)
	for i := len(trace) - 1; i >= 0; i-- {
		if err := now.step(trace[i], true); err != nil {
			t.Fatalf("event %d of %d: %v", i, len(trace), err)
		}
	}
	if whole && len(now.blocks)+len(now.segments)+len(now.mapped) > 0 {
		t.Errorf("it begins with %d blocks in %d segments and %d ranges", len(now.blocks), len(now.segments), len(now.mapped))
	}
	for i, e := range trace {
		if err := now.step(e, false); err != nil {
			t.Fatalf("event %d of %d: %v", i, len(trace), err)
		}
	}
	if !now.equal(end) {
		t.Error("the events lead to another state than the segments have")
	}
}

// captured runs steps of a small GPT of which all but the first three are one launch, and values beside them.
func captured(t *testing.T, env *tensor.Env, steps int) {
	t.Helper()
	g := model.NewGPT(env, small)
	opt := optim.NewAdamW(nn.Params(g), optim.AdamWConfig{})
	step := tensor.Capture(env, func(tokens *tensor.Tensor) *tensor.Tensor {
		loss := g.Loss(tokens, tokens)
		loss.Backward()
		opt.Step()
		return loss
	})
	for i := range steps + 3 {
		e, scope := env.Scope(uint64(i))
		step.Run(labels(e, 2, 16))
		e.Ones(30 << 20)
		scope.End()
	}
	if runs, _ := step.Replayed(); runs == 0 {
		t.Error("no step was one launch")
	}
	if err := env.Device().EmptyCache(); err != nil {
		t.Fatal(err)
	}
}

// adds compares a snapshot of a device's memory with its counters.
func adds(t *testing.T, s dict, env *tensor.Env) {
	t.Helper()
	var reserved, allocated, active, asked int64
	last := int64(-1)
	for _, seg := range s.list("segments") {
		reserved, allocated = reserved+seg.int("total_size"), allocated+seg.int("allocated_size")
		active, asked = active+seg.int("active_size"), asked+seg.int("requested_size")
		at := seg.int("address")
		if at <= last {
			t.Errorf("a segment at %#x behind one at %#x", at, last)
		}
		last = at
		var used int64
		for _, b := range seg.list("blocks") {
			if b.int("address") != at || (b.text("state") == "inactive") != (b.int("requested_size") == 0) {
				t.Errorf("%v at %#x", b, at)
			}
			if at += b.int("size"); b.text("state") == "active_allocated" {
				used += b.int("size")
			}
		}
		if at != seg.int("address")+seg.int("total_size") || used != seg.int("allocated_size") {
			t.Errorf("blocks end at %#x with %d bytes in use: %v", at, used, seg)
		}
	}
	m := env.Device().Memory()
	if reserved != m.Reserved.Current || allocated != m.Allocated.Current || active != m.Active.Current || asked != m.Requested.Current {
		t.Errorf("%d reserved, %d allocated, %d active, %d asked for; the device counts %v", reserved, allocated, active, asked, m)
	}
}

// described checks what events say beside addresses: calls of this file, categories with the one that the viewer asks for,
// the operation, and times that go on.
func described(t *testing.T, s dict, trace []dict, cfg prof.HistoryConfig) {
	t.Helper()
	categories, own, allocs, last := map[string]int{}, 0, 0, int64(0)
	for _, e := range trace {
		if at := e.int("time_us"); at < last {
			t.Errorf("an event at %d behind one at %d", at, last)
		} else {
			last = at
		}
		if c, ok := e["category"]; ok {
			categories[c.(string)]++
		}
		if e.text("action") != "alloc" {
			continue
		}
		allocs++
		if e.text("user_metadata") == "" {
			t.Errorf("an allocation for nothing: %v", e)
		}
		frames := e.list("frames")
		if slices.ContainsFunc(frames, func(f dict) bool {
			return strings.HasSuffix(f.text("filename"), "snapshot_test.go") && f.int("line") > 0
		}) {
			own++
		}
		if name := "warpline/"; len(frames) > 0 && (strings.Contains(frames[0].text("name"), name+"internal/") || strings.Contains(frames[0].text("name"), name+"prof.")) {
			t.Errorf("calls begin with %v", frames[0])
		}
	}
	for _, c := range []string{"unknown", device.LabelSaved, device.LabelGradient, device.LabelState} {
		if categories[c] == 0 && (c != device.LabelState || cfg.Events == 0) { // which the first step makes
			t.Errorf("nothing is of category %s: %v", c, categories)
		}
	}
	if own < allocs*3/4 || cfg.Stacks && own < allocs {
		t.Errorf("%d of %d allocations have calls of this file", own, allocs)
	}
	if settings := dict(s["allocator_settings"].(*pickle.ReadDict).Map()); settings.int("max_split_size") != -1 {
		t.Errorf("%v", settings)
	}
}

// TestSnapshotIsDiagnosed: what reads snapshots of PyTorch reads these: its figures are the allocator's, memory in use is by
// lines of this file and by the labels that it has here, and the request that failed is found.
func TestSnapshotIsDiagnosed(t *testing.T) {
	env := open(t, "null:a100-80")
	h := prof.NewHistory(prof.HistoryConfig{Stacks: true})
	env.Profiled(h)
	train(t, env, 3)
	keep := env.Ones(1000)
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	if err := h.WriteSnapshot(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := snapshot.Diagnose(context.Background(), path, f)
	if err != nil {
		t.Fatal(err)
	}
	stats := env.Device().MemoryStats()
	for name, want := range map[string]int64{"reserved": stats["reserved_bytes.all.current"], "live": stats["allocated_bytes.all.current"], "active": stats["active_bytes.all.current"]} {
		if r.Figures[name] != want {
			t.Errorf("%s: %v, the allocator has %d", name, r.Figures[name], want)
		}
	}
	live := r.Figures["live_by"].([]snapshot.Share)
	if len(live) == 0 || !slices.ContainsFunc(live, func(s snapshot.Share) bool { return strings.HasPrefix(s.Line, "snapshot_test.go:") }) {
		t.Errorf("%+v", live)
	}
	if !slices.ContainsFunc(live, func(s snapshot.Share) bool { return s.Kind == device.LabelState }) {
		t.Errorf("nothing is an optimizer's: %+v", live)
	}
	if len(r.Findings) != 1 || r.Findings[0].Rule != "R11" || slices.ContainsFunc(r.Notes, func(n string) bool { return !strings.HasPrefix(n, "could not be judged: ") }) {
		t.Errorf("%+v %v", r.Findings, r.Notes)
	}
	_ = keep.Item
}

// TestSnapshotErrors: without a device, and where nothing can be written.
func TestSnapshotErrors(t *testing.T) {
	h := prof.NewHistory(prof.HistoryConfig{})
	if err := h.WriteSnapshot(filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "env.Profiled") {
		t.Error(err)
	}
	env := open(t, "cpu")
	env.Profiled(h)
	if err := h.WriteSnapshot(filepath.Join(t.TempDir(), "no", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	h.Stop()
	h.Stop()
}

// TestSnapshotOfSeveral: devices have their own trace, in order.
func TestSnapshotOfSeveral(t *testing.T) {
	h := prof.NewHistory(prof.HistoryConfig{})
	a, b := open(t, "cpu").Profiled(h), open(t, "null:a100-80").Profiled(h)
	x, y := a.Ones(100), b.Ones(1000)
	s := read(t, h)
	for i, want := range []int64{512, 4096} {
		if r := of(i, s); len(r.blocks) != 1 || slices.Max(slices.Collect(maps.Values(r.blocks))) != want {
			t.Errorf("device %d: %v", i, r.blocks)
		}
	}
	if n := len(s["device_traces"].(*pickle.ReadList).Items); n != 2 {
		t.Errorf("%d traces", n)
	}
	_, _ = x.Item, y.Item
}
