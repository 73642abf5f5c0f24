package kineto

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// htaFigures are what HolisticTraceAnalysis 0.5.0 reads of a trace (bench/hta/figures.py).
type htaFigures struct {
	Temporal map[string]float64
	Idle     []struct {
		Stream   int64
		Category string
		US       float64
	}
}

// fractional are the samples with fractions of microseconds, which HolisticTraceAnalysis rounds.
var fractional = map[string]bool{"hta-nccl-collectives.json.gz": true, "hta-rocm62-mi250.json.gz": true, "hta-triton.json.gz": true}

func hta(t *testing.T) map[string]htaFigures {
	t.Helper()
	b, err := os.ReadFile("testdata/hta.json")
	var all map[string]htaFigures
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestHTABusy: the busy share is that of HolisticTraceAnalysis, within 0.1 point where times are whole microseconds and 0.7
// where it rounds them. Its span has the waits of cuda_sync in it.
func TestHTABusy(t *testing.T) {
	for name, h := range hta(t) {
		t.Run(name, func(t *testing.T) {
			got := 100 * diagnose(t, name).Figures["busy_share"].(float64)
			want := 100 - h.Temporal["idle_time_pctg"]
			bar := 0.1
			if fractional[name] {
				bar = 0.7
			}
			if math.Abs(got-want) > bar {
				t.Errorf("busy %.3f %%, and HolisticTraceAnalysis says %.3f %%", got, want)
			}
		})
	}
}

// TestHTAIdle: so are the idle times of each stream by cause, to the microsecond where times are whole.
func TestHTAIdle(t *testing.T) {
	for name, h := range hta(t) {
		if fractional[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := map[int64]streamIdle{}
			for _, s := range diagnose(t, name).Figures["idle_by_stream"].([]streamIdle) {
				got[s.Stream] = s
			}
			for _, w := range h.Idle {
				s := got[w.Stream]
				g := map[string]float64{"host_wait": s.Host, "kernel_wait": s.Kernel, "other": s.Other}[w.Category]
				if math.Abs(g-w.US) > 1 {
					t.Errorf("stream %d, %s: %.0f µs, and HolisticTraceAnalysis says %.0f", w.Stream, w.Category, g, w.US)
				}
			}
		})
	}
}
