package hostmem

import (
	"runtime"
	"testing"
)

func TestPhysical(t *testing.T) {
	n := Physical()
	if (runtime.GOOS == "linux" || runtime.GOOS == "darwin") && n < 64<<20 {
		t.Errorf("%d bytes of memory", n)
	}
}
