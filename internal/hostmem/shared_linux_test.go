package hostmem

import (
	"bytes"
	"testing"
)

// TestShare sees through the file what is written to the block.
func TestShare(t *testing.T) {
	before := Mapped()
	b, f, err := Share(pageSize + 5)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	copy(b.Bytes()[3:], "shared")
	got := make([]byte, 6)
	if _, err := f.ReadAt(got, 3); err != nil || !bytes.Equal(got, []byte("shared")) {
		t.Errorf("%q: %v", got, err)
	}
	if err := b.Free(); err != nil || Mapped() != before {
		t.Errorf("%v; %v mapped, %v before", err, Mapped(), before)
	}
}
