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
