package examples

import (
	"bytes"
	"testing"
)

// TestSimulatedDevice runs every program on a simulated GPU: it says what it says on the CPU.
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
