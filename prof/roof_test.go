package prof

import (
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// TestRoof: by the figures of an H100 SXM, 3,352 GB/s, 66.9 TFLOP/s of float32 and 989.4 TFLOP/s of bfloat16 in tensor cores.
func TestRoof(t *testing.T) {
	d := Device{Properties: tensor.Properties{Compute: [2]int{9, 0}, Multiprocessors: 132, Memory: 80 << 30}}
	in := func(op, dtype string) *kernel { return &kernel{Op: op, Ins: []operand{{Type: dtype}}} }
	for _, c := range []struct {
		k            *kernel
		bytes, flops int64
		took         time.Duration
		least        time.Duration
		bound        string
	}{
		{in("add", "float"), 3_352_000_000, 1, 2 * time.Millisecond, time.Millisecond, "memory"},
		{in("matmul", "float"), 1, 66_908_160_000, 2 * time.Millisecond, time.Millisecond, "compute"},
		{in("matmul", "c10::BFloat16"), 1, 989_429_760_000, 2 * time.Millisecond, time.Millisecond, "compute"},
		{in("add", "float"), 3_352_000, 1, 20 * time.Microsecond, time.Microsecond, "latency"},
		{in("add", "float"), 3_352_000, 1, 0, time.Microsecond, ""},
	} {
		var r roof
		r.add(&entry{activity: &activity{kind: device.KindLaunch}, kernel: c.k}, &d, c.bytes, c.flops)
		least, bound := r.of(c.took)
		if (least-c.least).Abs() > c.least/50 || bound != c.bound {
			t.Errorf("%s of %s: %v, bound by %q; want %v, %q", c.k.Op, c.k.Ins[0].Type, least, bound, c.least, c.bound)
		}
	}
	var r roof
	r.add(&entry{activity: &activity{kind: device.KindLaunch}, kernel: in("add", "float")}, &Device{}, 1e9, 1e9)
	if least, bound := r.of(time.Second); least != 0 || bound != "" {
		t.Errorf("of a device that is not known: %v, %q", least, bound)
	}
}
