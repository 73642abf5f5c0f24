package kineto

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
)

// samples are traces of others. Small ones lie in testdata; the large ones are read where they are there.
func sample(t testing.TB, name string) io.Reader {
	t.Helper()
	for _, dir := range []string{"testdata", "../../../shared/samples"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		t.Cleanup(func() { f.Close() })
		if !strings.HasSuffix(name, ".gz") {
			return f
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	t.Skipf("%s is not here: it is large, and kept beside the repository", name)
	return nil
}

func diagnose(t testing.TB, name string) *finding.Report {
	t.Helper()
	r, err := Diagnose(context.Background(), name, sample(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// expected are the figures that another program read from the samples (testdata/README.md).
func expected(t testing.TB) map[string]map[string]any {
	t.Helper()
	b, err := os.ReadFile("testdata/expect.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Traces map[string]map[string]any }
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all.Traces
}

// TestFigures: counts are exact, times within a microsecond, shares within 1e-4.
func TestFigures(t *testing.T) {
	for name, want := range expected(t) {
		t.Run(name, func(t *testing.T) {
			got := asJSON(t, diagnose(t, name).Figures)
			for key, w := range want {
				if key != "kind" && !near(key, got[key], w) {
					t.Errorf("%s: %v, and should be %v", key, got[key], w)
				}
			}
		})
	}
}

func asJSON(t testing.TB, v any) (m map[string]any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func near(key string, got, want any) bool {
	g, ok := got.(float64)
	w, also := want.(float64)
	switch {
	case !ok || !also:
		return reflect.DeepEqual(got, want)
	case strings.HasSuffix(key, "_us"):
		return math.Abs(g-w) <= 1
	case strings.HasSuffix(key, "_share"):
		return math.Abs(g-w) <= 1e-4
	}
	return g == w
}
