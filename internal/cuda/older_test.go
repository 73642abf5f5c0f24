package cuda_test

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestOlderConformance runs the suite under all checks with the kernels of compute capability 7.5: of every run a part, which
// the kernels share with later cards for the most. `warpline check --device sim:t4` takes all.
func TestOlderConformance(t *testing.T) {
	t.Setenv(testutil.WalkEnv, "")
	devicetest.RunShort(t, opener(t, simcuda.Config{Card: "t4", Checks: gpusim.AllChecks}))
}

// TestOlderBits: products and attention of float32 have the same bits on cards that copy ahead and on those that do not, and
// products that may be rounded are not.
func TestOlderBits(t *testing.T) {
	seed := testutil.Seed(t)
	spread := testutil.NewSpread(t, seed, 4)
	for _, code := range []ir.Code{ir.MatMul, ir.Linear, ir.Conv2d, ir.Conv2dGradWeight, ir.Attention, ir.AttentionGrad} {
		t.Run(code.String(), func(t *testing.T) {
			var cases, rounded []*conform.Case
			for c := range conform.Cases(conform.Options{Seed: seed, Short: true, Codes: []ir.Code{code}}) {
				switch {
				case c.Op.In(0).DType != dtype.F32:
				case c.Op.Attr.Precision == 0:
					cases = append(cases, c)
				default:
					rounded = append(rounded, c)
				}
			}
			cases = testutil.Some(spread, cases, func(c *conform.Case) string { return c.Name })
			want := runCases(t, simcuda.Config{}, cases)
			for i, sum := range runCases(t, simcuda.Config{Card: "t4"}, cases) {
				if sum != want[i] {
					t.Errorf("other bits than those of later cards: %s", cases[i].Name)
				}
			}
			dev := opener(t, simcuda.Config{Card: "t4"})()
			for _, c := range rounded {
				k, err := dev.Prepare(c.Op)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range k.Steps {
					if strings.Contains(s.Name, "tf32") || strings.Contains(s.Name, "bf16") {
						t.Errorf("%s takes %s", c.Name, s.Name)
					}
				}
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTooOld: a card before 7.5 is refused with what it has, what is needed and what works.
func TestTooOld(t *testing.T) {
	s, err := simcuda.New(simcuda.Config{Card: "v100-16"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cuda.New(s.API(), 0, "cuda:0", cuda.Options{})
	hint := advice.HintOf(err)
	if err == nil || !strings.Contains(err.Error(), "has compute capability 7.0; the kernels need 7.5 (Turing) or later") {
		t.Errorf("error %v", err)
	}
	for _, works := range []string{"cpu", "sim:0", "doctor"} {
		if !strings.Contains(hint, works) {
			t.Errorf("the hint does not name %s: %s", works, hint)
		}
	}
}

// TestWider: a card of 7.5 says what it widens, and others widen nothing.
func TestWider(t *testing.T) {
	for card, want := range map[string]string{"gtx-1650": cuda.Wider, "t4": cuda.Wider, "a100-80": "", "h100-80": ""} {
		d := opener(t, simcuda.Config{Card: card})()
		if got := d.Info().Wider; got != want {
			t.Errorf("%s: %q", card, got)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
