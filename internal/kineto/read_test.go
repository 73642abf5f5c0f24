package kineto

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
)

// TestMicroseconds: nanoseconds are exact where a float64 is not.
func TestMicroseconds(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"-2.342", -2342, true}, {"1759874214000001.123", 1759874214000001123, true}, {"12.3456", 12346, true},
		{"1.5e3", 1500000, true}, {"7.1", 7100, true}, {"NaN", 0, false}, {"Infinity", 0, false}, {"1e400", 0, false},
		{"99999999999999999999", 0, false}, {"", 0, false}, {"-", 0, false}, {"12x", 0, false}, {"null", 0, false},
	} {
		if got, ok := microseconds([]byte(c.in)); ok != c.ok || ok && got != c.want {
			t.Errorf("%q: %d, %v; should be %d, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

func read(t *testing.T, s string) *Trace {
	t.Helper()
	tr, err := Read(context.Background(), strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

const oneKernel = `{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2, "args": {"stream": 7, "correlation": 3}}`

// TestForms: events of any of the forms that files have.
func TestForms(t *testing.T) {
	for name, s := range map[string]string{
		"object":            `{"schemaVersion": 1, "traceEvents": [` + oneKernel + `]}`,
		"events first":      `{"traceEvents": [` + oneKernel + `], "x": {"y": ["]", {}]}, "z": "\"", "n": 1}`,
		"array":             `[` + oneKernel + `]`,
		"byte order mark":   "\xEF\xBB\xBF" + `[` + oneKernel + `]`,
		"pid is a string":   `[` + strings.Replace(oneKernel, `"pid": 0`, `"pid": "0"`, 1) + `]`,
		"old names":         `[` + strings.Replace(oneKernel, `"kernel"`, `"Kernel"`, 1) + `]`,
		"ts is a string":    `[` + strings.Replace(oneKernel, `1.5`, `"1.5"`, 1) + `]`,
		"escaped name":      `[` + strings.Replace(oneKernel, `"k"`, `"k"`, 1) + `]`,
		"deep":              `[` + strings.Replace(oneKernel, `"stream"`, `"deep": `+strings.Repeat("[", 100000)+strings.Repeat("]", 100000)+`, "stream"`, 1) + `]`,
		"control":           `[` + strings.Replace(oneKernel, `"args": {`, `"args": {"x": "`+"\x00\x1b"+`", `, 1) + `]`,
		"not UTF-8":         `[` + strings.Replace(oneKernel, `"args": {`, `"args": {"x": "`+"\xff\xfe"+`", `, 1) + `]`,
		"a broken one":      `[{"ph": "X" "cat"}, ` + oneKernel + `]`,
		"a trailing escape": `[{"ph": "X", "name": "C:\"}, ` + oneKernel + `, ` + oneKernel + `]`,
	} {
		t.Run(name, func(t *testing.T) {
			if !Is([]byte(s)[:min(len(s), 65536)]) {
				t.Error("is not recognised")
			}
			tr := read(t, s)
			if len(tr.device) == 0 || tr.device[0].start != 1500 || tr.Name(&tr.device[0]) != "k" {
				t.Fatalf("%+v", tr.device)
			}
			if one := read(t, s); len(one.device) != len(tr.device) {
				t.Error("another time, other events")
			}
		})
	}
}

// TestNot: what is no trace is an error that says so.
func TestNot(t *testing.T) {
	for _, s := range []string{"", "   ", "null", `"text"`, "{}", `{"a": 1}`, `{"traceEvents": {}}`, `{"a"`, `{"a" 1}`, `{a}`, "\x80\x02}q",
		`{"traceEvents":[}`, `{"traceEvents": [`, `{"traceEvents": [{"ph": "X"`, `[{"ph": "X" "cat"}]`} {
		if tr, err := Read(context.Background(), strings.NewReader(s)); err == nil {
			t.Errorf("%q: a trace %+v", s, tr)
		}
	}
	for _, s := range []string{"", "[[-1, 1, 37888, 7]]", `{"a": 1}`, "[1]", "PK", "[{"} {
		if Is([]byte(s)) {
			t.Errorf("%q is taken for a trace", s)
		}
	}
}

// TestTimes: durations below zero count as none, and times that are no numbers are left out; both are told.
func TestTimes(t *testing.T) {
	kernel := func(ts, dur string) string {
		return fmt.Sprintf(`{"ph": "X", "cat": "kernel", "name": "k", "ts": %s, "dur": %s, "args": {"stream": 1}}`, ts, dur)
	}
	tr := read(t, `[`+strings.Join([]string{kernel("1", "-5"), kernel("NaN", "1"), kernel("1", "Infinity"), kernel("1", "1e12"), kernel("2", "3")}, ",")+`]`)
	if len(tr.device) != 2 || tr.device[0].dur != 0 || tr.device[1].dur != 3000 {
		t.Errorf("%+v", tr.device)
	}
	if notes := strings.Join(tr.Notes(), "; "); !strings.Contains(notes, "1 event has a duration below zero") || !strings.Contains(notes, "3 events were left out, with times") {
		t.Error(notes)
	}
}

// TestCut: a file that breaks off anywhere is a trace up to there, with the position; so is one whose stream does.
func TestCut(t *testing.T) {
	whole := tracetest.GPT(tracetest.Options{Steps: 3})
	first := bytes.Index(whole, []byte("},\n"))
	for at := first + 3; at < len(whole)-3; at += len(whole) / 97 {
		r, err := Diagnose(context.Background(), "cut", bytes.NewReader(whole[:at]))
		if err != nil {
			t.Fatalf("cut at %d: %v", at, err)
		}
		if n := strings.Join(r.Notes, "; "); !strings.Contains(n, fmt.Sprintf("cut at byte %d", at)) {
			t.Fatalf("cut at %d: %q", at, n)
		}
		for i := range r.Findings {
			if r.Findings[i].Name == "no-gpu-events" {
				t.Errorf("cut at %d: %s", at, r.Findings[i].String())
			}
		}
		if unseen := strings.Contains(strings.Join(r.Notes, ""), "no event of the device lies before"); unseen && slices.Contains(r.Checked, "events of the device") {
			t.Errorf("cut at %d: %v are well, and %v", at, r.Checked, r.Notes)
		}
	}
	r, err := Diagnose(context.Background(), "cut", io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), iotest.ErrReader(iotest.ErrTimeout)))
	if err != nil || !strings.Contains(strings.Join(r.Notes, ""), iotest.ErrTimeout.Error()) {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestCutGzip: a compressed file that breaks off says so, and is a trace up to there.
func TestCutGzip(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(tracetest.ResNet(tracetest.Options{Steps: 4}))
	w.Close()
	g, err := gzip.NewReader(bytes.NewReader(z.Bytes()[:z.Len()/2]))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Read(context.Background(), g)
	if err != nil || len(tr.device) == 0 || !strings.Contains(tr.counts.cut, "unexpected EOF") {
		t.Errorf("%v, %+v", err, tr)
	}
}

// endless repeats a text behind a beginning.
type endless struct {
	begin, again string
	left         int64
	at           int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && e.left > 0 {
		var m int
		if e.at < len(e.begin) {
			m = copy(p[n:], e.begin[e.at:])
		} else {
			m = copy(p[n:], e.again[(e.at-len(e.begin))%len(e.again):])
		}
		m = int(min(int64(m), e.left))
		n, e.at, e.left = n+m, e.at+m, e.left-int64(m)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestLarge: one value without end takes no more memory than the window has.
func TestLarge(t *testing.T) {
	const size = 80 << 20
	for name, e := range map[string]*endless{
		"string":   {begin: `[` + oneKernel + `,{"ph": "X", "name": "`, again: "aaaaaaaaaaaaaaa ", left: size},
		"brackets": {begin: `[` + oneKernel + `,{"ph": "X", "args": `, again: "[[[[[[[[", left: size},
		"objects":  {begin: `[` + oneKernel + `,{"ph": `, again: `{"ph":`, left: size},
		"space":    {begin: `[` + oneKernel, again: "        ", left: size},
		"metadata": {begin: `{"traceEvents": [` + oneKernel + `], "distributedInfo": "`, again: "xxxxxxxx", left: size},
	} {
		tr, err := Read(context.Background(), e)
		if err != nil || len(tr.device) != 1 || tr.counts.cut == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCancel: who cancels gets the context's error.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, &endless{begin: "[", again: oneKernel + ",", left: math.MaxInt64}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
