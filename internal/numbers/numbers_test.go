package numbers

import (
	"bytes"
	"testing"
)

func TestNumbers(t *testing.T) {
	const v = 0x1122334455667788
	for size, want := range map[int][]byte{1: {0x88}, 2: {0x88, 0x77}, 4: {0x88, 0x77, 0x66, 0x55}, 8: {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}} {
		p := bytes.Repeat([]byte{0xEE}, 9)
		Put(p, size, v)
		if !bytes.Equal(p[:size], want) || p[size] != 0xEE {
			t.Errorf("%d bytes are %x", size, p)
		}
		if got := Get(p, size); got != v&(1<<(8*size)-1) {
			t.Errorf("of %d bytes: %x", size, got)
		}
	}
}
