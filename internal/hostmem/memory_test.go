package hostmem

import (
	"bytes"
	"os"
	"runtime"
	"testing"
)

// TestMemory reads and writes by both ways what lies in this process, and names memory that is not there.
func TestMemory(t *testing.T) {
	ways := []Memory{Own{}}
	if runtime.GOOS == "linux" {
		ways = append(ways, Process(os.Getpid()))
	} else if err := Process(1).Read(make([]byte, 1), 1); err == nil {
		t.Error("another process's memory was read")
	}
	b, err := Alloc(3 * pageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	for _, m := range ways {
		for _, n := range []int{0, 1, 13, pageSize, 2*pageSize + 1} {
			want := bytes.Repeat([]byte{byte(n), 7, 9}, n)[:n]
			at := b.Addr + 3
			if err := m.Write(at, want); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, n)
			if err := m.Read(got, at); err != nil || !bytes.Equal(got, want) || !bytes.Equal(Bytes(at, n), want) {
				t.Errorf("%T: %d bytes came back as others: %v", m, n, err)
			}
		}
	}
	for _, m := range ways[1:] {
		if err := m.Read(make([]byte, 8), 8); err == nil {
			t.Error("memory at 8 was read")
		}
		if err := m.Write(8, make([]byte, 8)); err == nil {
			t.Error("memory at 8 was written")
		}
	}
}
