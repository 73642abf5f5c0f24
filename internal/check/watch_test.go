package check

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ledger"
)

// TestHang: a part that hangs is a failure, ends the check and leaves what was found before.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		defer close(release)
		parts := []part{
			{Row{Part: "op", Name: "well"}, func(_ context.Context, row *Row) error { row.Cases = 3; return nil }},
			{Row{Part: "op", Name: "endless"}, func(_ context.Context, row *Row) error { row.Cases = 5; <-release; return nil }},
			{Row{Part: "op", Name: "after"}, func(context.Context, *Row) error { t.Error("it was run"); return nil }},
		}
		var rep Report
		rep.run(t.Context(), parts, time.Minute, nil)
		if len(rep.Rows) != 2 || rep.Cases != 4 || rep.Failed != 1 || rep.Broken != "endless" || !rep.stuck || rep.Cut || rep.Seconds != 60 {
			t.Errorf("%+v", rep)
		}
		if text := rep.Text(200); !strings.Contains(text, "FAILED op endless: 1 of 1: there is no answer after 1m0s") || !strings.Contains(text, "go on with --skip endless") {
			t.Error(text)
		}
	})
}

// TestHangInterrupted: who interrupts a check does not wait for what hangs, and waits for what ends soon.
func TestHangInterrupted(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			release := make(chan bool)
			defer close(release)
			var rep Report
			rep.run(ctx, []part{{Row{Part: "op", Name: "long"}, func(ctx context.Context, row *Row) error {
				row.Cases = 5
				if <-ctx.Done(); hangs {
					<-release
				}
				return ctx.Err()
			}}}, time.Hour, nil)
			if !rep.Cut || rep.stuck != hangs || (rep.Failed == 1) != hangs || !hangs && rep.Cases != 5 || rep.Seconds > 80 {
				t.Errorf("hangs %v: %+v", hangs, rep)
			}
		})
	}
}

// endless is a card on which probes hang.
type endless struct {
	device.Device
	release chan bool
}

func (endless) DriverVersion() (int, error) { return 13000, nil }

func (e endless) Info() device.Info { return device.Info{Compute: [2]int{9, 0}} }

func (e endless) Probe(_ []byte, _ string, _, _ int, _, out []byte) error {
	<-e.release
	clear(out)
	return nil
}

func TestProbeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := endless{cpu.New(), make(chan bool)}
		defer close(dev.release)
		var a Answer
		err := a.ask(t.Context(), dev, ledger.Probes()[0], time.Minute)
		if !stuck(err) || a.Status != Failed || !strings.Contains(a.Why, "no answer") {
			t.Errorf("%v, %+v", err, a)
		}
	})
}

// compiled is a device with kernels, one of which the driver refuses.
type compiled struct{ device.Device }

func (compiled) Compile(_ context.Context, each func(string, error)) {
	each("good", nil)
	each("bad", &driver.Error{Call: "cuModuleLoadDataEx", Result: driver.InvalidPTX})
	each("good too", nil)
}

// TestCompiling: modules that the driver refuses are counted, the first with its error.
func TestCompiling(t *testing.T) {
	dev := compiled{cpu.New()}
	if parts := compiling(device.Name{Kind: "sim"}, dev); parts != nil {
		t.Errorf("%d parts for a simulated card", len(parts))
	}
	var rep Report
	rep.run(t.Context(), compiling(device.Name{Kind: "cuda"}, dev), 0, nil)
	if len(rep.Rows) != 1 || rep.Cases != 3 || rep.Failed != 1 || rep.Broken != "" || !strings.Contains(rep.Rows[0].First, "INVALID_PTX") {
		t.Errorf("%+v", rep)
	}
}

// TestKeep: an error of the suite's end is a row, for the others are worth keeping.
func TestKeep(t *testing.T) {
	var rep Report
	rep.keep(Row{Part: "device", Name: "close", Cases: 1}, errors.New("it does not"))
	if rep.Cases != 1 || rep.Failed != 1 || rep.Broken != "" || rep.Rows[0].First != "it does not" {
		t.Errorf("%+v", rep)
	}
}
