//go:build !purego && (amd64 || arm64)

package kernels

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/hostmem"
)

// TestGrow checks that a buffer is kept while it suffices, and when there is
// no memory for a larger one.
func TestGrow(t *testing.T) {
	before := hostmem.Mapped()
	var b hostmem.Block
	for _, c := range []struct {
		n, size int
		ok      bool
	}{{0, 0, true}, {100, 100, true}, {50, 100, true}, {1 << 62, 100, false}, {200, 200, true}} {
		if ok := grow(&b, c.n); ok != c.ok || b.Size != c.size {
			t.Errorf("grow to %d: %v, holds %d; want %v, %d", c.n, ok, b.Size, c.ok, c.size)
		}
	}
	if err := b.Free(); err != nil || hostmem.Mapped() != before {
		t.Errorf("%+v mapped, %+v before; %v", hostmem.Mapped(), before, err)
	}
}

// TestPackFew: of few rows of C, A is packed where its rows, or the steps of B, would push each other out of the first cache.
func TestPackFew(t *testing.T) {
	for _, c := range []struct {
		height, m, k, row int
		pack              bool
	}{
		{6, 32, 1024, 256, false}, {6, 32, 1024, 272, false}, {6, 64, 4096, 1040, false}, {6, 32, 1024, 1024, true}, {6, 32, 1024, 512, true},
		{14, 14, 1024, 272, true}, {14, 28, 4096, 1040, true}, {14, 56, 2048, 272, true}, {14, 14, 1040, 272, false}, {14, 6, 1024, 272, false}, {6, 65, 1024, 272, true},
	} {
		p := product{set: &kernelSet{elements: singles, size: 4, height: c.height, vector: 8, laneA: 16, stepsK: 384, columns: 256, rows: true}}
		p.source = Product[float32]{M: c.m, N: 256, K: c.k, A: make([]float32, c.m*c.k), ARow: c.k, ACol: 1, B: make([]float32, c.k*c.row), BRow: c.row, BCol: 1}
		if !p.prepare() || p.packA != c.pack {
			t.Errorf("%+v: A is packed: %v", c, p.packA)
		}
		for _, b := range []*hostmem.Block{&p.bufA, &p.bufB} {
			if err := b.Free(); err != nil {
				t.Error(err)
			}
		}
	}
}
