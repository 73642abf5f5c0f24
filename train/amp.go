package train

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// AMP is what a run computes matrix products in. The zero value is [AMPNone].
type AMP string

// The values of AMP: float32, the 16-bit types by env.Autocast, float16 with a loss scaler, and float32 with products in TF32
// by env.Products(tensor.High).
const (
	AMPNone AMP = "none"
	AMPBF16 AMP = "bf16"
	AMPFP16 AMP = "fp16"
	AMPTF32 AMP = "tf32"
)

// AMPs are the values of [AMP].
var AMPs = []string{string(AMPNone), string(AMPBF16), string(AMPFP16), string(AMPTF32)}

// ParseAMP reads a value of [AMP]. Runs and command lines of earlier versions have true, which is bf16, and false.
func ParseAMP(text string) (AMP, error) {
	switch text {
	case "true":
		return AMPBF16, nil
	case "false":
		return AMPNone, nil
	}
	return word("amp", text, AMPs, AMPNone)
}

// UnmarshalJSON reads a value, or the truth value of earlier versions.
func (a *AMP) UnmarshalJSON(raw []byte) (err error) {
	*a, err = wordOrTruth(raw, ParseAMP)
	return err
}

// on tells whether values are kept in 16 bits.
func (a AMP) on() bool { return a == AMPBF16 || a == AMPFP16 }

// policy is env with the precision of products.
func (a AMP) policy(env *tensor.Env) *tensor.Env {
	switch a {
	case AMPBF16:
		return env.Autocast(dtype.BF16)
	case AMPFP16:
		return env.Autocast(dtype.F16)
	case AMPTF32:
		return env.Products(tensor.High)
	}
	return env
}

// scaler is what keeps the gradients of a run in range; nil where they need nothing.
func (a AMP) scaler() *optim.LossScaler {
	if a != AMPFP16 {
		return nil
	}
	return optim.NewLossScaler(optim.LossScalerConfig{})
}

// leftOut tells a step that the loss scaler left out, which it does where the norm is not finite, and notes it.
func (s *session) leftOut(u *underway, norm float64) bool {
	if s.Scaler == nil || finite(norm) != nil {
		return false
	}
	u.Skipped = true
	if finite(u.Loss) == nil {
		s.Watch.Note(fmt.Sprintf("step %d is left out: its loss is %v in float16", u.Step.Step, u.Loss))
	}
	return true
}

// tolerates notes what the loss scaler will deal with: gradients beyond float16. All else stops a run.
func (s *session) tolerates(a *tensor.Anomaly) bool {
	if s.Scaler == nil || !a.Backward {
		s.Watch.Note(fmt.Sprintf("step %d has the first number that is none", s.queued+1))
		return false
	}
	if key := a.Line + a.Op; !s.told[key] {
		s.told[key] = true
		s.Watch.Note(fmt.Sprintf("%v, at %s in step %d, which is left out", a, a.Line, s.queued+1))
	}
	return true
}

// scaling is what the end of a run says of its loss scaler: the scale, and how many of all steps it left out. Both are nil
// without one.
func (s *session) scaling() (scale *float64, skipped *int) {
	if s.Scaler == nil || s.dry() {
		return nil, nil
	}
	updates, steps := 0, 0
	for name, n := range s.Optimizer.Counters() {
		if name == "steps" {
			steps = n
		} else {
			updates = max(updates, n)
		}
	}
	now, left := s.Scaler.Scale(), max(0, steps-updates)
	return &now, &left
}

// lost is the line of a step in log.jsonl that was left out and has no loss that JSON could hold.
type lost struct {
	Step    int  `json:"step"`
	Skipped bool `json:"skipped"`
}
