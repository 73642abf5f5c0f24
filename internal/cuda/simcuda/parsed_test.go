package simcuda

import (
	"runtime"
	"testing"
	"time"
)

// TestParsed: those who load the same text have the same module, and nothing is kept of one that nobody has.
func TestParsed(t *testing.T) {
	const text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f() { ret; }\n"
	known := func() int {
		parsed.Lock()
		defer parsed.Unlock()
		return len(parsed.modules)
	}
	before := known()
	a, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := parse(text); err != nil || b != a {
		t.Errorf("the same text is read again, or: %v", err)
	}
	if b, err := parse(text + "\n"); err != nil || b == a {
		t.Errorf("another text is said to be the same, or: %v", err)
	}
	if _, err := parse("text"); err == nil {
		t.Error("a text that is no module is taken")
	}
	runtime.KeepAlive(a)
	for end := time.Now().Add(10 * time.Second); known() > before && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if now := known(); now > before {
		t.Errorf("%d modules are known, and %d before", now, before)
	}
}
