package prof_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// TestHeapProfile: the samples add up to the allocator's counters to the unit, as the file has them and as go tool pprof says, and
// name kind, module and operation.
func TestHeapProfile(t *testing.T) {
	for _, name := range []string{"cpu", "null:a100-80", "sim:a100-80:3"} {
		env := open(t, name)
		train(t, env, 1)
		h := prof.NewHistory(prof.HistoryConfig{})
		env.Profiled(h)
		before := env.Device().Memory().Allocated
		var allocations int64
		env.Device().Inventory(func(v *tensor.Inventory) { allocations = v.Stats.Allocation.All.Allocated })
		train(t, env, 2)
		path := filepath.Join(t.TempDir(), "heap.pb.gz")
		if err := h.WriteHeap(path); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p, err := profile.Parse(f)
		if err != nil {
			t.Fatal(err)
		}
		sums := make([]int64, len(p.SampleType))
		kinds, modules := map[string]int64{}, map[string]bool{}
		for _, s := range p.Sample {
			for i, v := range s.Value {
				sums[i] += v
			}
			kinds[s.Label["kind"][0]] += s.Value[1]
			if len(s.Label["op"]) != 1 || s.Label["op"][0] == "" {
				t.Errorf("%s: labels %v", name, s.Label)
			}
			for _, m := range s.Label["module"] {
				modules[m] = true
			}
		}
		var stats device.Stats
		env.Device().Inventory(func(v *tensor.Inventory) { stats = v.Stats })
		m := env.Device().Memory()
		want := []int64{stats.Allocation.All.Current, m.Allocated.Current, env.Device().Memory().Used,
			stats.Allocation.All.Allocated - allocations, m.Allocated.Allocated - before.Allocated}
		if !slices.Equal(sums, want) {
			t.Errorf("%s: sums %v, the allocator counts %v", name, sums, want)
		}
		if kinds[device.LabelParameter] == 0 || kinds[device.LabelState] == 0 || !modules["transformer.h.0.attn.c_attn"] {
			t.Errorf("%s: kinds %v, modules %v", name, kinds, modules)
		}
		if name != "cpu" || !asksPprof(t) {
			continue
		}
		for _, view := range []string{"-top", "-peek=."} {
			out, err := exec.Command("go", "tool", "pprof", "-unit=B", view, path).CombinedOutput()
			total := strconv.FormatInt(m.Allocated.Current, 10) + "B"
			if err != nil || !strings.Contains(string(out), "of "+total+" total") || !strings.Contains(string(out), "snapshot_test") && !strings.Contains(string(out), "train") {
				t.Errorf("pprof %s, wanted a total of %s: %v\n%s", view, total, err, out)
			}
		}
	}
}

// TestTimeline: at each point kinds add up to what is in use, never above what is reserved; the most is the peak, by those who
// held it, and the last point is now.
func TestTimeline(t *testing.T) {
	for name, cfg := range map[string]prof.HistoryConfig{"null:a100-80": {}, "null:h100-80": {Events: 200}, "sim:a100-80": {}} { // whose changes share moments
		env := open(t, name)
		h := prof.NewHistory(cfg)
		env.Profiled(h)
		peak := prof.Memory(env, func() { train(t, env, 3) })
		h.Stop()
		for _, points := range []int{0, 10} {
			all, err := h.Timelines(points)
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			l := all[0]
			most, top := int64(0), int64(0)
			for i := range l.At {
				sum := int64(0)
				for _, column := range l.Bytes {
					sum += column[i]
				}
				if most = max(most, sum); sum > l.Reserved[i] || sum < 0 || i > 0 && l.At[i] < l.At[i-1] {
					t.Errorf("point %d: %d bytes of %d at %v", i, sum, l.Reserved[i], l.At[i])
				}
				if i == len(l.At)-1 && sum != env.Device().Memory().Used {
					t.Errorf("%d bytes at the end, %d are in use", sum, env.Device().Memory().Used)
				}
			}
			for _, h := range l.Top {
				top += h.Bytes
			}
			if most != l.Peak || top != l.Peak || cfg.Events == 0 && (l.Peak != peak.Peak || l.Kept != peak.Kept) {
				t.Errorf("a peak of %d, of %d by holders; the timeline has %d; %v", l.Peak, top, most, peak)
			}
			if points > 0 && len(l.At) > 2*points || (l.Lost > 0) != (cfg.Events > 0) || len(l.Backward) == 0 && cfg.Events == 0 {
				t.Errorf("%d points, %d events lost, %d walks", len(l.At), l.Lost, len(l.Backward))
			}
			if text := l.Terminal(80, 20, false); strings.Count(text, "\n") > 22 || !strings.Contains(text, "peak ") {
				t.Errorf("%s", text)
			}
			if svg := l.SVG(600, 300); !strings.HasPrefix(svg, "<svg") || strings.Count(svg, "<path fill=") != len(l.Labels) {
				t.Errorf("%.300s", svg)
			}
		}
	}
}

// TestPage: the page fetches nothing, and its data are what the timeline and the allocator say.
func TestPage(t *testing.T) {
	h := prof.NewHistory(prof.HistoryConfig{})
	env := open(t, "cpu").Profiled(h)
	other := open(t, "null:a100-80").Profiled(h)
	train(t, env, 2)
	path := filepath.Join(t.TempDir(), "memory.html")
	if err := h.WritePage(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, fetched := range []string{"src=", "href=", "@import", "fetch(", "import "} {
		if strings.Contains(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), fetched) {
			t.Errorf("the page has %q", fetched)
		}
	}
	_, rest, _ := strings.Cut(string(text), "const data = ")
	var data struct {
		Devices []struct {
			prof.Timeline
			Rows    []prof.Holder
			Moments []struct {
				Segments []struct {
					Size   int64
					Blocks [][5]int64
				}
			}
		}
	}
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&data); err != nil || len(data.Devices) != 2 {
		t.Fatal(len(data.Devices), err)
	}
	d := data.Devices[0]
	var highest, size, used int64
	for _, m := range d.Moments {
		asked := int64(0)
		size, used = 0, 0
		for _, s := range m.Segments {
			size += s.Size
			for i, b := range s.Blocks {
				if end := b[0] + b[1]; end > s.Size || i+1 < len(s.Blocks) && end > s.Blocks[i+1][0] || b[3] >= int64(len(d.Rows)) {
					t.Errorf("block %v of a segment of %d", b, s.Size)
				}
				used += b[1]
				if b[4] == 0 {
					asked += b[2]
				}
			}
		}
		highest = max(highest, asked)
	}
	if m := env.Device().Memory(); highest != d.Peak || size != m.Reserved.Current || used != m.Active.Current || len(d.Moments) < 100 {
		t.Errorf("of %d moments the highest has %d bytes, the peak is %d; the last has %d of %d: %v", len(d.Moments), highest, d.Peak, used, size, m)
	}
	if len(data.Devices[1].Moments) != 1 || data.Devices[1].Peak != 0 {
		t.Errorf("a device without events: %+v", data.Devices[1])
	}
	_ = other
}
