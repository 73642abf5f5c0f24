package formula

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestMagnitude: what is refused as too large is all that could overflow: no estimate has more than 32 bytes for each of the
// values that magnitude tells, in any style, so that none within mostValues reaches 2^62.
func TestMagnitude(t *testing.T) {
	r := testutil.Rand(t)
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	tried := 0
	for range 4000 {
		heads := pick(1, 2, 8, 64)
		decoder := &Decoder{Layers: pick(1, 3, 80), Width: heads * pick(1, 16, 128), Heads: heads, KVHeads: pick(0, 1), HeadWidth: pick(0, 256), FFN: pick(0, 8, 30000),
			Vocab: pick(1, 256, 200000), Context: pick(1, 128, 100000), Activation: []Activation{Gated, Fused, NewOps, ReLU}[r.IntN(4)],
			LayerNorm: r.IntN(2) == 0, Bias: r.IntN(2) == 0, FFNBias: r.IntN(2) == 0, OutBias: r.IntN(2) == 0, Positions: r.IntN(2) == 0, Untied: r.IntN(2) == 0, Dropout: r.IntN(2) == 0}
		s := Setup{Style: Style(Styles[r.IntN(len(Styles))]), AMP: []AMP{Off, BF16, FP16, TF32}[r.IntN(4)], Batch: pick(1, 8, 4096), Recompute: Recompute(Recomputes[r.IntN(len(Recomputes))]),
			Optimizer: Optimizers[r.IntN(len(Optimizers))].Name, Whole: r.IntN(2) == 0, Dropout: r.IntN(2) == 0, Chunked: r.IntN(4) == 0, Devices: pick(0, 8), Hopper: r.IntN(2) == 0}
		for _, m := range []Model{decoder, &MLP{Widths: []int{pick(1, 1000), pick(1, 50, 30000), pick(1, 10)}},
			&ResNet{Depths: [4]int{pick(1, 3), pick(1, 4), pick(1, 36), pick(1, 3)}, Bottleneck: r.IntN(2) == 0, Classes: pick(1, 1000, 100000), Image: pick(32, 224, 2048)}} {
			e, err := New(m, s)
			if err != nil {
				continue
			}
			tried++
			sum := int64(0)
			for _, x := range e.Terms {
				if x.Name != "context" && x.Name != "workspace" {
					sum += x.Bytes
				}
			}
			normal, _ := s.normal()
			if limit := 32 * m.magnitude(&normal); float64(sum) > limit || float64(e.Parameters) > limit/4 {
				t.Fatalf("%+v with %+v: %d bytes, more than %.3g", m, s, sum, limit)
			}
		}
	}
	if tried < 2000 {
		t.Errorf("%d estimates", tried)
	}
}

// Sizes that no number of bytes holds are refused, and batches beyond them do not fit.
func TestTooLarge(t *testing.T) {
	p, err := Find("llama-3.1-405b")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m Model
		s Setup
	}{
		"batch":   {p.Model, Setup{Style: Torch, Batch: 1 << 31, Context: 131072}},
		"beyond":  {p.Model, Setup{Style: Torch, Batch: 1 << 40}},
		"mlp":     {&MLP{Widths: []int{2e9, 2e9, 2e9}}, Setup{Style: Torch}},
		"picture": {&ResNet{Depths: [4]int{1, 1, 1, 1}, Classes: 10, Image: 1 << 30}, Setup{Style: Torch, Batch: 1 << 20}},
	} {
		if e, err := New(c.m, c.s); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
