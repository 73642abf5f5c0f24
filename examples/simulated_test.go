package examples

import (
	"bytes"
	"testing"
)

// TestSimulatedDevice runs every program on a simulated GPU: it says what it says on the CPU.
// TestTwoDevicesOfOne: a system with one card has both copies there, one with two a copy on each.
func TestTwoDevicesOfOne(t *testing.T) {
	for name, want := range map[string]string{"sim:a100-80x1": "sim:a100-80x1", "sim:a100-80x2": "sim:a100-80x2:1", "sim:0": "sim:1", "cpu": "cpu"} {
		env := fresh(t, name)
		if got := neighbour(env).Device().Name(); got != want {
			t.Errorf("beside %s is %s, want %s", name, got, want)
		}
	}
	for _, p := range []Program{TwoDevices, SplitModel} {
		var out bytes.Buffer
		if err := p(fresh(t, "sim:a100-80x1"), 2, &out); err != nil {
			t.Error(err)
		}
	}
}

func TestSimulatedDevice(t *testing.T) {
	each(t, func(t *testing.T, name string, p Program) {
		var outs [2]bytes.Buffer
		for i, device := range []string{"cpu", "sim:0"} {
			if err := p(fresh(t, device), 20, &outs[i]); err != nil {
				t.Fatal(err)
			}
		}
		if outs[0].String() != outs[1].String() {
			t.Errorf("cpu says %q, sim:0 says %q", &outs[0], &outs[1])
		}
	})
}
