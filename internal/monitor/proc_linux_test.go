package monitor

import (
	"os"
	"strings"
	"testing"
)

// FuzzStat: a name may hold what separates fields, and what is no line of the system's is refused.
func FuzzStat(f *testing.F) {
	if own, err := os.ReadFile("/proc/self/stat"); err == nil {
		f.Add(own)
	}
	f.Add([]byte("1 (a) b) (c) S 7 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 99 1 1"))
	f.Add([]byte("1 (x"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		name, _, _, ok := parseStat(stat)
		if !ok {
			return
		}
		if !strings.Contains(string(stat), "("+name+")") {
			t.Errorf("%q is no name in %q", name, stat)
		}
	})
}

func TestStat(t *testing.T) {
	name, parent, start, ok := parseStat([]byte("1 (a) b) (c) S 7 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 99 1 1"))
	if name != "a) b) (c" || parent != 7 || start != 99 || !ok {
		t.Errorf("%q %d %d %v", name, parent, start, ok)
	}
}
