package check

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/engines"
	"github.com/warpline-ml/warpline/internal/ledger"
)

// The ways in which a probe ends.
const (
	Holds   = "holds"
	Differs = "differs"
	NotRun  = "not run" // for another card, or a newer driver
	Failed  = "failed"  // the device could not run it
)

// Answer is what a device says to a probe of the simulator's ledger.
type Answer struct {
	Probe   string `json:"probe"`
	Assumes string `json:"assumes"`
	Status  string `json:"status"`
	Words   string `json:"words,omitempty"` // hexadecimal; "word*n" stands for n of them
	Why     string `json:"why,omitempty"`   // of a status other than Holds
}

// Recordable is an error with a hint unless the device of a name runs the ledger's probes.
func Recordable(name string) error {
	n, dev, err := open(name)
	if err != nil {
		return err
	}
	if n.Kind == "sim" && engines.SimChecks() {
		return advice.Failf("leave --record out, or the checks: unset "+engines.SimEnv, "some probes do on purpose what %s=%s forbids", engines.SimEnv, os.Getenv(engines.SimEnv))
	}
	if _, ok := device.As[device.Prober](dev); !ok {
		return advice.Failf("leave --record out, or give --device cuda:N or sim:N", "%s runs no kernels of PTX, so there is nothing to record", name)
	}
	return nil
}

// RunProbes asks a device for its answer to each probe. After one that takes the device's context with it, no more are
// run. A cancelled context ends it with the answers so far.
func RunProbes(ctx context.Context, name string, progress func(done, all int, name string)) ([]Answer, error) {
	if err := Recordable(name); err != nil {
		return nil, err
	}
	n, dev, err := open(name)
	if err != nil {
		return nil, err
	}
	var answers []Answer
	var broken error
	probes := ledger.Probes()
	for i, p := range probes {
		if ctx.Err() != nil {
			break
		}
		if progress != nil {
			progress(i, len(probes), p.ID)
		}
		a := Answer{Probe: p.ID, Assumes: p.Assumes}
		if broken == nil {
			broken = a.ask(ctx, dev, p, patienceWith(n))
		} else {
			a.Status, a.Why = NotRun, "the device is out of use since an earlier probe"
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// ask runs a probe, for no longer than a limit if that is not 0. The error is one that the device stays in.
func (a *Answer) ask(ctx context.Context, dev device.Device, p *ledger.Probe, limit time.Duration) error {
	if sm, ok := runsOn(p.PTX, dev.Info().Compute); !ok {
		a.Status, a.Why = NotRun, "the card is no "+sm
		return nil
	}
	out := make([]byte, p.Out)
	prober, _ := device.As[device.Prober](dev)
	err := watch(ctx, limit, func() error {
		return prober.Probe([]byte(p.PTX), "probe", p.Blocks, p.Threads, p.In, out)
	})
	var failed *driver.Error
	switch isDriver := errors.As(err, &failed); {
	case isDriver && failed.Result == driver.UnsupportedPTXVersion:
		a.Status, a.Why = NotRun, err.Error()
		return nil
	case err != nil:
		a.Status, a.Why = Failed, err.Error()
		if outOfUse(err) || stuck(err) {
			return err
		}
		return nil
	}
	a.judge(p, out)
	return nil
}

func (a *Answer) judge(p *ledger.Probe, out []byte) {
	words := make([]uint32, len(out)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(out[4*i:])
	}
	a.Words = strings.TrimPrefix(ledger.FormatAnswer(p.ID, words), p.ID+" ")
	a.Status = Holds
	if err := p.Check(words); err != nil {
		a.Status, a.Why = Differs, strings.TrimPrefix(err.Error(), "ledger: "+p.ID+": ")
	}
}

// runsOn reports whether a card of a compute capability runs a module, and its target: "sm_80" and later cards, "sm_90a"
// on 9.0 alone.
func runsOn(ptx string, compute [2]int) (target string, ok bool) {
	_, rest, _ := strings.Cut(ptx, ".target ")
	target = strings.TrimRight(strings.Fields(rest + " ?")[0], ",")
	digits := strings.TrimRight(strings.TrimPrefix(target, "sm_"), "a")
	sm, err := strconv.Atoi(digits)
	if err != nil {
		return target, false
	}
	have := compute[0]*10 + compute[1]
	return target, sm == have || sm < have && !strings.HasSuffix(target, "a")
}

// countOf is the number of answers of a status.
func countOf(answers []Answer, status string) (n int) {
	for _, a := range answers {
		if a.Status == status {
			n++
		}
	}
	return n
}

// ProbesText is the answers for people: how many probes ended in which way, and of those that do not hold why.
func ProbesText(answers []Answer, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s of what the simulator assumes: ", counted(len(answers), "probe", "probes"))
	ends := []string{counted(countOf(answers, Holds), "holds", "hold")}
	for _, end := range [][3]string{{Differs, "differs", "differ"}, {Failed, "failed", "failed"}, {NotRun, "was not run", "were not run"}} {
		if n := countOf(answers, end[0]); n > 0 {
			ends = append(ends, counted(n, end[1], end[2]))
		}
	}
	fmt.Fprintln(&b, strings.Join(ends, ", "))
	for _, status := range []string{Failed, Differs} {
		for _, a := range answers {
			if a.Status == status {
				b.WriteString(wrapped(width, "%s %s (%s): %s", strings.ToUpper(status), a.Probe, a.Assumes, a.Why))
			}
		}
	}
	left := map[string][]string{} // probes that were not run, by the reason
	for _, a := range answers {
		if a.Status == NotRun {
			left[a.Why] = append(left[a.Why], a.Probe)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		b.WriteString(wrapped(width, "NOT RUN: %s: %s", why, strings.Join(left[why], ", ")))
	}
	return b.String()
}

// counted is a number with its word.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// HasFailed reports whether the device could not run a probe.
func HasFailed(answers []Answer) bool {
	return slices.ContainsFunc(answers, func(a Answer) bool { return a.Status == Failed })
}
