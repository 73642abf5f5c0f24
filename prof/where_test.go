package prof

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/ir"
)

// TestIdle: a window derived by hand. The device works from 10 to 20, 50 to 60, 70 to 80 and 95 to 100. It begins when the
// first launch arrives; at 20 the host is in a wait since 15, to 25, and launches again late; at 60 the loader is waited for,
// to 66; at 80 the host does something of its own.
func TestIdle(t *testing.T) {
	work := func(start, span int64) record { return record{start: start, took: 2, span: uint32(span)} }
	p := &Profile{
		Devices: []Device{{Name: "a", Timed: true}}, Took: 100, steps: []boundary{{0, 0}}, sites: make([]stack, 1),
		whats: []activity{{kind: device.KindLaunch, Kernel: 1}, {kind: device.KindWait, Text: device.WaitRead}, {kind: device.KindRange}},
		times: []interval{{10, 20}, {50, 60}, {70, 80}, {95, 100}}, ranges: []part{{Name: LoaderRange}}, kernels: []kernel{{Op: "neg"}},
		all: []record{
			work(2, 1), {what: 1, start: 15, took: 10}, work(45, 2), {what: 2, part: 1, start: 58, took: 8}, work(66, 3), work(90, 4),
		},
	}
	f := p.Facts()
	want := finding.Idle{Loader: 6, Wait: 30, Host: 10 + 4 + 15}
	if f.Idle != want {
		t.Errorf("idle %+v, want %+v", f.Idle, want)
	}
	if f.Busy != 35 || f.Busy+f.Idle.Sum() != p.Took || f.Launches != 4 || f.LaunchHost != 8 || f.Kernel != 10 {
		t.Errorf("facts %+v", f)
	}
	if len(f.Waits) != 1 || f.Waits[0].Count != 1 || f.Waits[0].Took != 10 || f.Waits[0].Idle != 30 {
		t.Errorf("waits %+v", f.Waits)
	}
}

// TestProducts: the operations that tensor cores do, and their gradients; none that only looks like one.
func TestProducts(t *testing.T) {
	for name, want := range map[string]bool{
		"matmul": true, "linear": true, "conv2d": true, "conv2d_grad_weight": true, "attention_grad": true, "self_attention_grad": true,
		"max_pool2d": false, "bias_grad": false, "add": false, "layer_norm": false,
	} {
		found := false
		for c := ir.Invalid + 1; int(c) < ir.Codes; c++ {
			if c.Row().Name == name {
				found = true
				if products()[name] != want {
					t.Errorf("%s is a product: %v", name, !want)
				}
			}
		}
		if !found {
			t.Errorf("no op %s", name)
		}
	}
}
