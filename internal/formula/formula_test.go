package formula

import (
	"math"
	"testing"
)

// gpt2 is one of GPT-2's sizes.
func gpt2(layers, width, heads int) *Decoder {
	return &Decoder{Layers: layers, Width: width, Heads: heads, Vocab: 50257, Context: 1024, LayerNorm: true, Bias: true, Positions: true, Activation: NewOps, Dropout: true}
}

func estimate(t *testing.T, m Model, s Setup) *Estimate {
	t.Helper()
	e, err := New(m, s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// within tells of a figure that is further than a share from what was measured.
func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	off := got/want - 1
	t.Logf("%s: %.6g, measured %.6g: %+.3f %%", what, got, want, 100*off)
	if !(math.Abs(off) <= share) {
		t.Errorf("%s is %.6g, measured %.6g: %+.3f %%, more than %.3g %%", what, got, want, 100*off, 100*share)
	}
}
