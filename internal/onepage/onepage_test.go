package onepage

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
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
