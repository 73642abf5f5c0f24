package gpusim

import (
	"errors"
	"strings"
	"testing"
)

// TestPlaceOfFinding: what clang gives line 0 is named by the line before it, and an address before the first allocation
// by that.
func TestPlaceOfFinding(t *testing.T) {
	r := newRig(t, wrap("", ".loc 1 5 0\nmov.u32 %lane, 1;\n.loc 1 0 0\nst.global.u32 [%in+-36], %lane;")+".file 1 \"k.cu\"\n", false)
	first := r.alloc(256, "first")
	_, err := r.try("k", d1(1), d1(1), Options{}, first, r.alloc(256, "second"))
	var f *Fault
	if !errors.As(err, &f) || f.Finding.Source != "k.cu:5" || !strings.Contains(f.Finding.Alloc, "36 bytes before the allocation of 256 bytes") {
		t.Error(err)
	}
}
