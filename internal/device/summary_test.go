package device

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestCells has the vectors of PyTorch's table.
func TestCells(t *testing.T) {
	for n, want := range map[int64]string{786431: "786431 B  ", 786432: "   768 KiB", 5 * mib: "  5120 KiB", 900 * mib: "   900 MiB"} {
		if got := sizeCell(n, n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{7: "      7   ", 749999: " 749999   ", 750000: "    750 K "} {
		if got := countCell(n, n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := sizeCell(2048, 5*mib); got != "     2 KiB" {
		t.Errorf("2048 in the units of 5 MiB is %q", got)
	}
}

func TestSummary(t *testing.T) {
	a := NewAllocator(newFake(64*mib), Config{})
	alloc(t, a, 1000, 0)
	a.Free(alloc(t, a, 3*mib, 0))
	a.Alloc(100*mib, 0)
	got := a.Summary()
	for _, line := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
		if len(line) != 77 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	testutil.Golden(t, "testdata/summary.txt", []byte(got))
}
