package kineto

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
)

// FuzzDiagnose: no bytes make the reader or the rules crash, hang, or write what is no JSON; what is said of a file stays
// the same however its bytes arrive.
func FuzzDiagnose(f *testing.F) {
	// Beginnings of traces that have something of each kind: mutations of small inputs are many.
	f.Add(tracetest.ResNet(tracetest.Options{Steps: 1, Tiny: 2, Items: 1})[:6000])
	f.Add(tracetest.GPT(tracetest.Options{Steps: 1, Items: 1, Pageable: true})[:6000])
	for _, s := range []string{
		`{"schemaVersion": 1, "traceEvents": [` + oneKernel + `], "traceName": "x"}`,
		`[` + oneKernel + `, {"ph": "X", "cat": "kernel", "ts": NaN, "dur": -1}`,
		`[{"ph": "X", "cat": "Operator", "name": "ProfilerStep#1", "ts": 0, "dur": 1e3}, ` + oneKernel + `]`,
		`{"distributedInfo": {"rank": 0}, "distributedInfo": {"rank": 1}, "deviceProperties": 7, "traceEvents": [], "traceEvents": [` + oneKernel + `]}`,
		`[{"ph": "X", "name": "C:\"}, ` + oneKernel + `]`, "\xff\xfe[\x00{\x00", `[{"args": ` + strings.Repeat("[", 5000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Is(b)
		r, err := Diagnose(context.Background(), "fuzz", bytes.NewReader(b))
		if err != nil {
			return
		}
		whole, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		if len(b) > 1<<16 {
			return
		}
		again, err := Diagnose(context.Background(), "fuzz", &dripping{b})
		if err != nil {
			t.Fatalf("in pieces: %v", err)
		}
		if pieces, _ := json.Marshal(again); !bytes.Equal(whole, pieces) {
			t.Errorf("in pieces it says\n%s, and at once\n%s", pieces, whole)
		}
	})
}

// dripping gives few bytes at a time.
type dripping struct{ b []byte }

func (d *dripping) Read(p []byte) (int, error) {
	n := min(len(p), 7, len(d.b))
	if n == 0 {
		return 0, io.EOF
	}
	copy(p, d.b[:n])
	d.b = d.b[n:]
	return n, nil
}
