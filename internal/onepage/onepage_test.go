package onepage

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/render"
)

// made is a report of a device.
func made(t *testing.T, device string) *Report {
	t.Helper()
	r, err := New(t.Context(), Config{Device: device, Version: "test", Now: time.Unix(1e9, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Notes) > 0 {
		t.Fatalf("%q", r.Notes)
	}
	return r
}

// Every part is there, on the processor and on a simulated card, and its figures agree with each other.
func TestReport(t *testing.T) {
	for _, device := range []string{"cpu", "sim:l4"} {
		r := made(t, device)
		if o := r.Operation; !(0 < o.Least && o.Least <= o.Median && o.Median <= o.Most && o.Asked <= o.Most) || math.Abs(o.FLOPS*o.Median/(2*math.Pow(float64(o.Size), 3))-1) > 1e-9 {
			t.Errorf("%s: %+v", device, o)
		}
		sum := 0.0
		for _, s := range r.Training.Shares {
			sum += s.Share
		}
		if math.Abs(sum-1) > .02 {
			t.Errorf("%s: shares of a step sum to %v: %+v", device, sum, r.Training.Shares)
		}
		known := int64(0)
		for _, x := range r.Training.Terms {
			if x.Known && x.Name != "kept ready by the allocator" {
				known += x.Bytes
			}
			if x.Grows == "" || x.Less == "" {
				t.Errorf("%s: %+v", device, x)
			}
		}
		if peak := r.Training.Memory.Peak; known > peak || known < peak*9/10 {
			t.Errorf("%s: terms make %d bytes of a peak of %d", device, known, peak)
		}
		names := ""
		for _, l := range r.Training.Strip.Lanes {
			names += l.Name + "; "
		}
		if strings.Contains(names, "device: kernels") != (device != "cpu") || !strings.Contains(names, "host: operations") {
			t.Errorf("%s: lanes %s", device, names)
		}
		written(t, r)
	}
}

// written is a page that is a whole document and fetches nothing, Markdown with the same figures, and JSON that reads back.
func written(t *testing.T, r *Report) {
	t.Helper()
	var page, text bytes.Buffer
	if err := errors.Join(r.WriteHTML(&page), r.WriteMarkdown(&text, 100)); err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?i)<script|<link|<iframe|src=|href=|url\(|@import`).FindString(page.String()); found != "" {
		t.Errorf("the page has %s", found)
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page.String(), -1) {
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("a picture is no XML: %v", err)
			}
		}
	}
	if n := strings.Count(page.String(), "<svg"); n != 4 {
		t.Errorf("%d pictures", n)
	}
	for _, want := range []string{"Findings", "Environment", "One operation, measured", "Where a step goes", "Who worked when", "Memory over time, by owner", "What can run out of memory", render.Bytes(r.Training.Memory.Peak)} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
		if !strings.Contains(text.String(), want) && want != "Where a step goes" {
			t.Errorf("the Markdown lacks %q", want)
		}
	}
	raw, err := json.Marshal(r)
	var again map[string]any
	if err != nil || json.Unmarshal(raw, &again) != nil {
		t.Errorf("JSON: %v", err)
	}
	for _, key := range []string{"environment", "operation", "training", "findings", "checked"} {
		if again[key] == nil {
			t.Errorf("JSON lacks %q", key)
		}
	}
}

// What files and machines say is text on the page, whatever they say.
func TestTextsAreEscaped(t *testing.T) {
	const hostile = `<img src=x onerror=alert(1)>`
	r := &Report{Device: hostile, Why: hostile, Environment: []Row{{hostile, hostile}}, Notes: []string{hostile}, Checked: []string{hostile},
		Findings: []finding.Finding{{Rule: "R01", Title: hostile, Evidence: finding.Says(hostile), Fix: hostile, DisprovedBy: hostile, Line: hostile}},
		Files:    []*finding.Report{{File: hostile, Kind: hostile, Notes: []string{hostile}}}}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<img") || strings.Count(page.String(), "&lt;img") < 10 {
		t.Error(page.String())
	}
	s := &Strip{Microseconds: 1, Lanes: []Lane{{Name: hostile, Spans: [][2]float64{{0, 1}}}}}
	if strings.Contains(s.SVG(300), "<img") {
		t.Error(s.SVG(300))
	}
}

func TestStrip(t *testing.T) {
	if got := joined([][2]float64{{5, 6}, {0, 1}, {1.5, 2}, {1, 1.2}, {1.1, 1.9}}, .5); len(got) != 2 || got[0] != [2]float64{0, 2} || got[1] != [2]float64{5, 6} {
		t.Errorf("%v", got)
	}
	l := Lane{Spans: [][2]float64{{0, 2.5}, {9, 10}}}
	busy, sum := l.busy(10, 4), 0.0
	for _, v := range busy {
		sum += v * 2.5
	}
	if busy[0] != 1 || busy[1] != 0 || math.Abs(sum-3.5) > 1e-12 {
		t.Errorf("%v: %v", busy, sum)
	}
}

// drawnTrace is a trace of some steps of a card, in which every name is hostile.
func drawnTrace(rank int, hostile string) string {
	name, _ := json.Marshal(hostile)
	var b strings.Builder
	fmt.Fprintf(&b, `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": %s, "totalGlobalMem": 1000}], "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": 2}, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "first", "pid": 1, "tid": 1, "ts": 0, "dur": 1}`, name, rank)
	add := func(cat string, name string, pid, at, took, id int) {
		text, _ := json.Marshal(name)
		fmt.Fprintf(&b, `,{"ph": "X", "cat": %q, "name": %s, "pid": %d, "tid": 7, "ts": %d, "dur": %d, "args": {"correlation": %d, "device": 0, "stream": 7}}`, cat, text, pid, at, took, id)
	}
	for step := range 4 {
		at := 1000 * step
		add("user_annotation", fmt.Sprintf("ProfilerStep#%d", step), 1, at, 1000, 0)
		add("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, at, 300, 0)
		for k := range 40 {
			id := 1 + step*40 + k
			add("cuda_runtime", "cudaLaunchKernel", 1, at+300+10*k, 5, id)
			add("kernel", hostile+fmt.Sprint(k), 0, at+310+10*k, 8, id)
		}
		add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, at+800, 100, 0)
	}
	return b.String() + "]}"
}

// Of files there is a page with pictures and nothing of the machine; whatever their names are, they are text on it, in Markdown and
// on a terminal; and the page of many files stays small.
func TestPageOfFiles(t *testing.T) {
	const hostile = "<script>alert(1)</script>\x1b[31m\u202e|*x*</style>"
	dir := t.TempDir()
	for i := range 3 * mostPictures {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d-<b>.json", i)), []byte(drawnTrace(i, hostile)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file                    string
		pictures, files, traces int
	}{{filepath.Join(dir, "rank0-<b>.json"), 4, 1, 1}, {dir, 4*mostPictures + 2, 3*mostPictures + 1, mostPictures + 1}, {"../snapshot/testdata/steady.pickle.gz", 2, 1, 1}, {"../snapshot/testdata/timeline.raw.json.gz", 2, 1, 1}} {
		r, err := New(t.Context(), Config{Files: []string{c.file}, OnlyFiles: true, Version: "test", Now: time.Unix(1e9, 0).UTC()})
		if err != nil {
			t.Fatal(err)
		}
		var page, text, screen bytes.Buffer
		if err := errors.Join(r.WriteHTML(&page), r.WriteMarkdown(&text, 100), r.WriteText(&screen, 80)); err != nil {
			t.Fatal(err)
		}
		if len(r.Files) != c.files || len(r.Pictures) != c.traces || strings.Count(page.String(), "<svg") != c.pictures || page.Len() > 3<<20 {
			t.Errorf("%s: %d files, %d drawn, %d pictures, %d bytes", c.file, len(r.Files), len(r.Pictures), strings.Count(page.String(), "<svg"), page.Len())
		}
		if bad := regexp.MustCompile(`(?i)<script|<b>\.json|</style>[^\n]*</style>|\x1b|\x{202e}|environment`).FindString(page.String()); bad != "" {
			t.Errorf("%s: the page has %q", c.file, bad)
		}
		if bad := regexp.MustCompile(`\x1b|\x{202e}`).FindString(text.String() + screen.String()); bad != "" {
			t.Errorf("%s: the text has %q", c.file, bad)
		}
		if bad := regexp.MustCompile(`[^\\]<script`).FindString(text.String()); bad != "" {
			t.Errorf("%s: the Markdown has %q", c.file, bad)
		}
		for _, line := range strings.Split(screen.String(), "\n") {
			if render.Width(line) > 80 && strings.Contains(line, " ") && !strings.Contains(line, dir) {
				t.Errorf("%s: %d columns: %s", c.file, render.Width(line), line)
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
}

// TestBeside: a rank whose step is half as long as the longest has its work in the first half of the axis.
func TestBeside(t *testing.T) {
	full := slices.Repeat([]float64{1}, kineto.Columns)
	picture := func(file string, us float64) *Picture {
		return &Picture{File: file, Strips: []*Strip{{Microseconds: us, Lanes: []Lane{{Name: "device: products", Busy: full}}}}}
	}
	s := beside([]kineto.RankStep{{Rank: 3, File: "a"}, {Rank: 5, File: "b"}}, []*Picture{picture("b", 100), picture("a", 50)})
	if s.Microseconds != 100 || len(s.Lanes) != 4 || s.Lanes[0].Name != "rank 3: computes" {
		t.Fatalf("%+v", s)
	}
	for lane, want := range []float64{.5, 0, 1, 0} {
		sum := 0.0
		for _, v := range s.Lanes[lane].Busy {
			sum += v / kineto.Columns
		}
		if math.Abs(sum-want) > 1e-9 || len(s.Lanes[lane].Busy) != kineto.Columns {
			t.Errorf("lane %d: %v of the axis, want %v", lane, sum, want)
		}
	}
	if beside([]kineto.RankStep{{File: "a"}}, []*Picture{picture("a", 1)}) != nil {
		t.Error("one rank has nobody beside it")
	}
}

// TestResampled: means of means are the mean, however many there are.
func TestResampled(t *testing.T) {
	for _, n := range []int{1, 3, 7, 10, 23} {
		sum := 0.0
		for _, v := range resampled([]float64{1, 0, .5, .25, 0, 0, 1}, n) {
			sum += v / float64(n)
		}
		if math.Abs(sum-2.75/7) > 1e-12 {
			t.Errorf("%d: %v", n, sum)
		}
	}
}
