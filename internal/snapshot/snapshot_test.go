package snapshot

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/pickle"
)

// sample is a file of others, decompressed.
func sample(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// expected are the figures that a second implementation read out of a file.
func expected(t *testing.T, name string) map[string]any {
	t.Helper()
	b, err := os.ReadFile("testdata/expect.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all[name]
}

// asJSON is what a reader of our output gets.
func asJSON(t *testing.T, v any) (out map[string]any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSample: the figures of a foreign snapshot are exact, and what is said of it is that nothing is wrong.
func TestSample(t *testing.T) {
	b := sample(t, "steady.pickle.gz")
	if !Is(b[:1024]) {
		t.Error("not recognised")
	}
	r := diagnose(t, b)
	got := asJSON(t, r.Figures)
	want := expected(t, "steady.pickle.gz")
	if len(want) < 13 {
		t.Fatalf("%d figures", len(want))
	}
	for name, v := range want {
		if !reflect.DeepEqual(got[name], v) {
			t.Errorf("%s: %v, want %v", name, got[name], v)
		}
	}
	if got["live"] != want["allocated"] || got["stuck"] != want["inactive_bytes_in_segments_with_live_blocks"] || got["reclaimable"] != want["inactive_bytes_in_fully_free_segments"] {
		t.Errorf("%v", got)
	}
	said := strings.Join(r.Checked, "\n")
	for _, part := range []string{"steady: 2162 allocations and as many frees", "940 MiB more is reclaimable", "no fragmentation", "optimizer.py:78"} {
		if !strings.Contains(said, part) {
			t.Errorf("nothing says %q:\n%s", part, said)
		}
	}
	if len(r.Findings) != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "headroom: 3.59 GiB in use at most") || strings.Contains(said, "leak") {
		t.Errorf("%v %v\n%s", r.Findings, r.Notes, said)
	}
}

// TestTimelineSample: the same of a raw timeline. Its rows add up to what torch's own page draws.
func TestTimelineSample(t *testing.T) {
	b := sample(t, "timeline.raw.json.gz")
	if !IsTimeline(b[:1024]) || Is(b) {
		t.Error("not recognised")
	}
	r, err := DiagnoseTimeline(context.Background(), "file", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, r.Figures); got["rows"] != expected(t, "timeline.raw.json.gz")["rows"] {
		t.Errorf("%v", got)
	}
	if len(r.Findings) != 0 || len(r.Notes) != 1 {
		t.Errorf("%v %v", r.Findings, r.Notes)
	}
	var rows [][4]int64
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	var total, peak int64
	for _, row := range rows {
		total += row[2]
		peak = max(peak, total)
	}
	if r.Figures["peak"] != peak || r.Figures["end"] != total {
		t.Errorf("%v", r.Figures)
	}
}

// TestIs: what is a pickle and what is not.
func TestIs(t *testing.T) {
	for head, want := range map[string]bool{"\x80\x02}": true, "\x80\x04\x95": true, "\x80\x05\x95": true, "cposix\nsystem\n(": true,
		"\x80\x06}": false, "\x80\x01}": false, "\x80": false, "": false, "{\"a\": 1}": false, "cuda error\n": false, "PK\x03\x04": false, "\x1f\x8b\x08": false} {
		if Is([]byte(head)) != want {
			t.Errorf("%q: %v", head, !want)
		}
	}
	for head, want := range map[string]bool{"[[-1, 1, 37888, 7], [": true, "[ [1696966048083248105,3,-8192,0]": true, "[]": false, "[[1,2],[3,4]]": false,
		"[[0, 5, 1, 1]]": false, "[[0, 1, 1, 8]]": false, "{\"traceEvents\": [[": false, "": false, "[": false} {
		if IsTimeline([]byte(head)) != want {
			t.Errorf("%q: %v", head, !want)
		}
	}
}

// TestCutSnapshot: wherever a snapshot ends, there is a report of what lies before that says where, or an error that does.
func TestCutSnapshot(t *testing.T) {
	w := world{steps: 2}
	whole := w.file(t)
	most := 0
	for n := 0; n < len(whole); n += 1 + len(whole)/300 {
		r, err := Diagnose(context.Background(), "file", bytes.NewReader(whole[:n]))
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), "byte ") || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes: %v", n, err)
			}
		case len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "cut at byte "):
			t.Errorf("%d bytes: %v", n, r.Notes)
		default:
			if trace, ok := r.Figures["trace0"].(map[string]any); ok {
				most = max(most, trace["entries"].(int))
			}
		}
	}
	if most < 500 {
		t.Errorf("the longest had %d events", most)
	}
	foreign := sample(t, "steady.pickle.gz")
	r := diagnose(t, foreign[:len(foreign)*9/10])
	if trace, ok := r.Figures["trace0"].(map[string]any); !ok || trace["entries"].(int) < 1000 {
		t.Errorf("of nine tenths of the file there is %v", r.Notes)
	}
}

// TestHostile: files that are made to do harm, or are something else, are errors that say where; nothing of them is run.
func TestHostile(t *testing.T) {
	deep := "\x80\x02" + strings.Repeat("]", 5000) + strings.Repeat("a", 4999) + "."
	for name, c := range map[string]struct{ file, says string }{
		"os.system":      {"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.", `byte 28 (opcode 6): STACK_GLOBAL "posix" "system"`},
		"in a snapshot":  {"\x80\x02}(X\x08\x00\x00\x00segments]X\x01\x00\x00\x00acposix\nsystem\n", `"posix" "system"`},
		"deep":           {deep, "1000 deep"},
		"something else": {"\x80\x02}X\x01\x00\x00\x00aK\x01s.", "no memory snapshot"},
		"a number":       {"\x80\x02K\x01.", "no memory snapshot"},
		"nothing":        {"", "byte 0"},
	} {
		if _, err := Diagnose(context.Background(), name, strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Diagnose(ctx, "cancelled", bytes.NewReader(sample(t, "steady.pickle.gz"))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestOddSnapshots: what older and other writers leave out, or write in another way.
func TestOddSnapshots(t *testing.T) {
	frames := []any{call("forward", `C:\me\model.py`, 7)}
	for name, c := range map[string]struct {
		v    any
		line string
	}{
		"segments alone": {[]any{pickle.Of("device", 0, "address", 4096, "total_size", 1024, "allocated_size", 512, "active_size", 512, "blocks",
			[]any{pickle.Of("size", 512, "state", "active_allocated", "frames", frames), pickle.Of("size", 512, "state", "inactive")})}, "model.py:7"},
		"history": {pickle.Of("segments", []any{pickle.Of("device", 0, "address", 4096, "total_size", 1024, "allocated_size", 512, "blocks",
			[]any{pickle.Of("size", 512, "state", "active_awaiting_free", "history", []any{pickle.Of("addr", 4096, "real_size", 500, "frames", frames)}),
				pickle.Of("size", 512, "state", "free?")})}), "model.py:7"},
		"no frames": {pickle.Of("segments", []any{pickle.Of("device", 0, "total_size", 1024, "allocated_size", 512, "blocks",
			[]any{pickle.Of("size", 512, "state", "active_allocated"), pickle.Of("size", 512, "state", "inactive")})}, "device_traces",
			[]any{[]any{pickle.Of("action", "alloc", "addr", 1, "size", 5)}, []any{}}, "new_key", pickle.Of("1", nil)), kindUnknown},
	} {
		var b bytes.Buffer
		if err := pickle.Encode(&b, c.v); err != nil {
			t.Fatal(err)
		}
		r := diagnose(t, b.Bytes())
		live := r.Figures["live_by"].([]Share)
		if len(live) != 1 || live[0].Line != c.line || live[0].Bytes != 512 || r.Figures["stuck"] != int64(512) || len(r.Findings) != 0 {
			t.Errorf("%s: %+v, %v", name, live, r)
		}
	}
}

// rowsOf is a timeline of steps that each make 100 MiB and free it, and keep something.
func rowsOf(steps int, keep int64) string {
	rows := []string{"[-1, 1, 1000000000, 0]"}
	now := int64(1696966048083248105)
	row := func(action int, bytes int64, category int) {
		now += 1000
		b, _ := json.Marshal([]int64{now, int64(action), bytes, int64(category)})
		rows = append(rows, string(b))
	}
	for range steps {
		for range 10 {
			row(2, 10*mib, 4)
		}
		row(3, -5, 4)
		row(3, 5, 5)
		if keep > 0 {
			row(2, keep, 7)
		}
		for range 10 {
			row(4, -10*mib, 4)
		}
	}
	return "[" + strings.Join(rows, ", ") + "]"
}

// TestTimelineRules: growth is found, level memory is not growth.
func TestTimelineRules(t *testing.T) {
	for _, c := range []struct {
		steps int
		keep  int64
		rule  string
	}{{10, 5 * mib, "R06"}, {10, 0, ""}, {10, 512, ""}, {4, 5 * mib, ""}} {
		r, err := DiagnoseTimeline(context.Background(), "file", strings.NewReader(rowsOf(c.steps, c.keep)))
		if err != nil {
			t.Fatal(err)
		}
		judged(t, r, c.rule, "")
	}
}

// TestBadTimelines: what is before the fault is read, and the place is said.
func TestBadTimelines(t *testing.T) {
	good := "[[-1, 1, 100, 0], [5, 2, 10, 1]"
	for name, c := range map[string]struct{ tail, says string }{
		"cut": {"", "unexpected EOF"}, "in a row": {", [7, 2", "unexpected EOF"}, "NaN": {", [NaN, 2, 1, 1]]", `"NaN"`}, "infinite": {", [5, 2, 1e999, 1]]", "1e999"},
		"action": {", [5, 9, 1, 1]]", "action 9"}, "category": {", [5, 1, 1, 12]]", "category 12"}, "deep": {", " + strings.Repeat("[", 1000), "is no number"}, "digits": {", [" + strings.Repeat("1", 100), "is no number"},
		"text": {"hello", `'h' between rows`},
	} {
		r, err := DiagnoseTimeline(context.Background(), "file", strings.NewReader(good+c.tail))
		if err != nil || r.Figures["rows"] != 2 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], c.says) || !strings.Contains(r.Notes[0], "byte ") {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if _, err := DiagnoseTimeline(context.Background(), "file", strings.NewReader("[[")); err == nil || !strings.Contains(err.Error(), "byte 2") {
		t.Error(err)
	}
	r, err := DiagnoseTimeline(context.Background(), "file", strings.NewReader("[[9.5e3, 2, 10, 1], [5, 4, -10, 1]]"))
	if err != nil || len(r.Notes) != 2 || !strings.Contains(r.Notes[1], "1 rows are older") || r.Figures["end"] != int64(0) {
		t.Errorf("%v %v", r, err)
	}
}

// FuzzDiagnose: no file makes the readers panic, and what they report can be written.
func FuzzDiagnose(f *testing.F) {
	w := world{steps: 2, stuck: 400 * mib}
	var b bytes.Buffer
	small := pickle.Of("segments", []any{pickle.Of("device", 0, "address", 4096, "total_size", 1024, "blocks", []any{pickle.Of("size", 512, "state", "inactive")})},
		"device_traces", []any{[]any{pickle.Of("action", "alloc", "addr", 1, "size", 5, "frames", []any{call("f", "a.py", 1)}), pickle.Of("action", "oom", "size", 5, "device_free", 1)}})
	if err := pickle.Encode(&b, small); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(w.file(f))
	f.Add([]byte(rowsOf(7, mib)))
	f.Fuzz(func(t *testing.T, in []byte) {
		if r, err := Diagnose(context.Background(), "file", bytes.NewReader(in)); err == nil {
			asJSON(t, r)
		}
		if r, err := DiagnoseTimeline(context.Background(), "file", bytes.NewReader(in)); err == nil {
			asJSON(t, r)
		}
	})
}

func BenchmarkSample(b *testing.B) {
	in := sample(b, "steady.pickle.gz")
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		diagnose(b, in)
	}
}

// TestDevices: a device number that is no machine's is left out.
func TestDevices(t *testing.T) {
	s := &Snapshot{Segments: []*Segment{{Device: 3}, {Device: 1 << 40}, {Device: -1}}}
	if got := s.devices(); !slices.Equal(got, []int{3}) {
		t.Error(got)
	}
}
