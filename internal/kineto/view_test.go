package kineto

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
	"github.com/warpline-ml/warpline/internal/testutil"
)

func look(t testing.TB, r io.Reader) *View {
	t.Helper()
	v, err := Look(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mark is one of a tile.
type mark struct {
	lane, from, to int
	look           int
	share          float64
	event, name    int
}

func marksOf(t testing.TB, tile []byte) (marks []mark, names map[string]string) {
	t.Helper()
	n := int(binary.LittleEndian.Uint32(tile))
	for b := tile[4:]; len(marks) < n; b = b[tileMark:] {
		u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
		marks = append(marks, mark{int(u16(b)), int(u16(b[2:])), int(u16(b[4:])), int(b[6]), float64(b[7]) / 255, int(u32(b[8:])), int(u32(b[12:]))})
	}
	if err := json.Unmarshal(tile[4+n*tileMark:], &names); err != nil {
		t.Fatal(err)
	}
	return marks, names
}

// TestViewLanes: every event of the file is in one lane, where nothing lies over anything, and below what it lies in.
func TestViewLanes(t *testing.T) {
	for _, name := range []string{"hta-triton.json.gz", "hta-rocm62-mi250.json.gz", "hta-event-sync-multistream.json.gz"} {
		v := look(t, sample(t, name))
		took := 0
		var raw struct {
			TraceEvents []struct{ Ph string }
		}
		text, err := io.ReadAll(sample(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &raw); err != nil {
			t.Fatal(err)
		}
		for _, e := range raw.TraceEvents {
			if e.Ph == "X" {
				took++
			}
		}
		if v.Events+v.Left != took || v.Left != 0 || len(v.all) != v.Events {
			t.Errorf("%s: %d events and %d left of %d", name, v.Events, v.Left, took)
		}
		for lane := range v.Lanes {
			for i := v.begins[lane] + 1; i < v.begins[lane+1]; i++ {
				if v.all[i].start < v.all[i-1].end() {
					t.Fatalf("%s, %s: event %d begins before the one before it ends", name, v.Lanes[lane].Name, i)
				}
			}
		}
		for i := range v.all {
			f, ok := v.Event(i)
			var there struct {
				Name string
				Ts   float64
			}
			err := json.NewDecoder(bytes.NewReader(text[f.Place:])).Decode(&there)
			if !ok || err != nil || there.Name != f.Name {
				t.Fatalf("%s: event %d is %q, and at its place is %q: %v", name, i, f.Name, there.Name, err)
			}
			if n := len(v.Around(i)); v.Lanes[f.Lane].Depth > 0 && !v.Lanes[f.Lane].Device && n == 0 {
				t.Fatalf("%s: %q is at depth %d and lies in nothing", name, f.Name, v.Lanes[f.Lane].Depth)
			}
		}
	}
}

// TestTiles: each tick of a tile that an event covers is marked, and what is marked alone is that event; the time of a tile is that of its
// shares.
func TestTiles(t *testing.T) {
	r := testutil.Rand(t)
	v := look(t, bytes.NewReader(tracetest.ResNet(tracetest.Options{Steps: 3})))
	tiles := 0
	for range 60 {
		level := r.IntN(v.Levels())
		index, block := r.IntN(1<<min(level, 20)), 0
		marks, names := marksOf(t, v.Tile(level, index, block))
		wide := v.wide(level)
		w := Window{v.Span.Start + int64(index)*wide, v.Span.Start + int64(index+1)*wide}
		p := painter{v: v, w: w}
		for lane := range min(TileLanes, len(v.Lanes)) {
			in := slices.DeleteFunc(slices.Clone(marks), func(m mark) bool { return m.lane != lane })
			var busy, want float64
			for k, m := range in {
				if m.to <= m.from || m.to > TileTicks+1 || k > 0 && m.from < in[k-1].from {
					t.Fatalf("level %d, tile %d, lane %d: mark %+v behind %+v", level, index, lane, m, in[max(k-1, 0)])
				}
				busy += float64(m.to-m.from) * m.share
				if m.name != 0 && names[fmt.Sprint(m.name)] != shown(v.t.names.names[m.name]) {
					t.Fatalf("name %d is %q", m.name, names[fmt.Sprint(m.name)])
				}
			}
			for i := v.begins[lane]; i < v.begins[lane+1]; i++ {
				e := &v.all[i]
				if e.over() <= w.Start || e.start >= w.End {
					continue
				}
				tiles++
				want += float64(min(e.end(), w.End)-max(e.start, w.Start)) / float64(wide) * TileTicks
				at := min(p.tick(max(e.start, w.Start)), TileTicks-1)
				if !slices.ContainsFunc(in, func(m mark) bool { return m.from <= at+1 && at <= m.to+binTicks }) {
					t.Fatalf("level %d, tile %d, lane %d: nothing is marked at tick %d, where %q is: %+v", level, index, lane, at, v.t.Name(e), in)
				}
			}
			if off := busy - want; math.Abs(off) > TileTicks/(2*shares)+float64(3*len(in)) {
				t.Errorf("level %d, tile %d, lane %d: %.0f ticks are marked, %.0f are covered", level, index, lane, busy, want)
			}
		}
	}
	if tiles == 0 {
		t.Fatal("no event was looked at")
	}
	for _, bad := range [][3]int{{-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, -1}, {0, 0, 1 << 20}, {63, 0, 0}} {
		if marks, _ := marksOf(t, v.Tile(bad[0], bad[1], bad[2])); len(marks) != 0 {
			t.Errorf("tile %v has %d marks", bad, len(marks))
		}
	}
}

// TestViewAsked: totals, what is found, what is at a place and what is linked are those of all events, asked one by one.
func TestViewAsked(t *testing.T) {
	r := testutil.Rand(t)
	v := look(t, sample(t, "hta-alexnet-critical-path.json.gz"))
	a, b := r.Int64N(v.Span.Dur()), r.Int64N(v.Span.Dur())
	w := Window{v.Span.Start + min(a, b), v.Span.Start + max(a, b) + 1}
	sums, in := map[string]int64{}, 0
	for i := range v.all {
		if e := &v.all[i]; e.over() > w.Start && e.start < w.End {
			in++
			sums[shown(v.t.Name(e))] += min(e.end(), w.End) - max(e.start, w.Start)
		}
	}
	top, events := v.Top(w, len(sums)+1)
	if events != in || len(top) != len(sums) {
		t.Errorf("%d events of %d names in the window, want %d of %d", events, len(top), in, len(sums))
	}
	for i, x := range top {
		if sums[x.Name] != x.NS || i > 0 && x.NS > top[i-1].NS {
			t.Errorf("%q took %d, want %d", x.Name, x.NS, sums[x.Name])
		}
	}
	kernels, linked := 0, 0
	for i := range v.all {
		f, _ := v.Event(i)
		if got, ok := v.At(f.Lane, f.Start+f.Dur/2, 0); !ok || got != i {
			t.Fatalf("event %d is not where it is: %d, %t", i, got, ok)
		}
		if v.all[i].kind != kernel {
			continue
		}
		kernels++
		launched, all := v.Linked(i, 10)
		if all != len(launched) {
			t.Errorf("%d and %d launch %q", all, len(launched), f.Name)
		}
		for _, l := range launched {
			linked++
			if back, all := v.Linked(l.Event, 1000); all != len(back) || !slices.ContainsFunc(back, func(x Found) bool { return x.Event == i }) {
				t.Errorf("%q launches %d others, and not %q", l.Name, len(back), f.Name)
			}
		}
	}
	if kernels == 0 || linked < kernels*9/10 {
		t.Errorf("%d of %d kernels have their launch", linked, kernels)
	}
}

// TestFind: page by page, all events come that have a text in their names, once each and in the order of their starts, those that begin
// together too.
func TestFind(t *testing.T) {
	together := `{"ph":"X","name":"one %d","pid":1,"tid":%d,"ts":%d,"dur":1},`
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, together, i, i%5, 10*(i/20))
	}
	for of, v := range map[string]*View{
		"ATEN::": look(t, sample(t, "hta-alexnet-critical-path.json.gz")),
		"one":    look(t, strings.NewReader("["+strings.TrimSuffix(text.String(), ",")+"]")),
	} {
		var want []int
		for i := range v.all {
			if strings.Contains(strings.ToLower(v.t.Name(&v.all[i])), strings.ToLower(of)) {
				want = append(want, i)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int { return byStart(&v.all[a], &v.all[b]) })
		var got []int
		for behind := -1; ; behind = got[len(got)-1] {
			found, all := v.Find(of, behind, 7)
			if all != len(want) {
				t.Fatalf("%s: %d events, want %d", of, all, len(want))
			}
			if len(found) == 0 {
				break
			}
			for _, f := range found {
				got = append(got, f.Event)
			}
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %v in place of %v", of, got, want)
		}
	}
}

// TestViewOdd: files with nothing, with times that are none, and with rows that are named.
func TestViewOdd(t *testing.T) {
	v := look(t, strings.NewReader(`{"traceEvents": [{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"a \"loader\""}},{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"python"}},
		{"ph":"X","cat":"own","name":"","pid":1,"tid":2,"ts":1,"dur":0},{"ph":"X","name":"x","pid":1,"tid":2,"ts":1},{"ph":"X","name":"x","pid":1,"tid":2,"ts":"NaN"}]}`))
	if v.Events != 2 || v.Left != 1 || len(v.Lanes) != 2 || v.Lanes[0].Name != `a "loader" of python` || v.Lanes[1].Depth != 1 {
		t.Errorf("%+v", v)
	}
	empty := look(t, strings.NewReader(`{"traceEvents": [{"ph":"i","name":"x"}]}`))
	if top, n := empty.Top(Window{0, 10}, 5); len(top) != 0 || n != 0 || empty.Events != 0 {
		t.Errorf("%+v", empty)
	}
	if _, ok := empty.At(0, 0, 0); ok {
		t.Error("there is an event in nothing")
	}
	marksOf(t, empty.Tile(0, 0, 0))
}

// FuzzLook: whatever a file has, its view can be asked.
func FuzzLook(f *testing.F) {
	f.Add(`[`+oneKernel+`]`, uint64(1))
	f.Add(`[{"ph":"X","name":"a","ts":-4e15,"dur":1e9},{"ph":"X","name":"b","ts":4e15,"dur":600000000000000000}]`, uint64(2))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		v, err := Look(context.Background(), strings.NewReader(text))
		if err != nil {
			return
		}
		r := rand.New(rand.NewPCG(seed, 0))
		for level := range v.Levels() {
			marksOf(t, v.Tile(level, r.IntN(1<<min(level, 30)), r.IntN(2)))
		}
		v.Top(v.Span, 10)
		for i := range min(v.Events, 20) {
			v.Around(i)
			v.Linked(i, 5)
		}
		v.Find("a", r.IntN(30)-1, 5)
	})
}
