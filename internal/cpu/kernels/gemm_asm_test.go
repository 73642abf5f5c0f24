//go:build !purego && (amd64 || arm64)

package kernels

import (
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/par"
)

// TestGrow checks that a buffer is kept while it suffices, and when there is
// no memory for a larger one.
func TestGrow(t *testing.T) {
	before := hostmem.Mapped()
	var b hostmem.Block
	for _, c := range []struct {
		n, size int
		ok      bool
	}{{0, 0, true}, {100, 100, true}, {50, 100, true}, {1 << 62, 100, false}, {200, 200, true}, {largeBuffer, hostmem.LargePage, true}, {hostmem.LargePage, hostmem.LargePage, true}} {
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

// TestByColumns: few rows are shared out by columns where every thread has some, and what TestBitsDoNotDependOnThreads lays out is.
func TestByColumns(t *testing.T) {
	defer par.SetThreads(par.Threads())
	par.SetThreads(2)
	r := rand.New(rand.NewPCG(1, 1))
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		for _, c := range []struct {
			m, n, k          int
			columns, doubles bool
			want             bool
		}{
			{33, 264, 900, false, false, true}, {33, 264, 900, true, false, true}, {33, 264, 900, true, true, true}, {33, 264, 900, false, true, false},
			{64, 16, 1024, false, false, false}, {65, 264, 900, false, false, false}, {33, 265, 900, false, false, false}, {8, 264, 64, false, false, false},
		} {
			p := product{set: setOf(singles), shared: c.m*c.n*c.k >= parallelWork}
			if p.source = *lying[float32](r, c.m, c.n, c.k, c.columns); c.doubles {
				p.set, p.source = setOf(doubles), wordsOf(lying[float64](r, c.m, c.n, c.k, c.columns))
			}
			if p.set == nil {
				continue
			}
			if want := (c.want || c.doubles && p.set.rows) && !p.set.masks; !p.prepare() || p.byColumns() != want {
				t.Errorf("level %v, %+v: by columns: %v", l, c, p.byColumns())
			}
			for _, b := range []*hostmem.Block{&p.bufA, &p.bufB} {
				if err := b.Free(); err != nil {
					t.Error(err)
				}
			}
		}
		restore()
	}
}
