package prof

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Timer measures how long a device takes for a piece of a program:
//
//	t, err := prof.Timer{}.Time(env, func(env *tensor.Env) { x.In(env).MatMul(y) })
//	fmt.Println(t)
//
// The device's own clock tells: a mark before the work and one behind it, in the order of the env's queue. A clock around the calls
// would tell how long the host takes to ask.
type Timer struct {
	Warmup int // runs before those that count, which also pay for what is made once; 3 if 0
	Runs   int // that count; 20 if 0

	// FLOPs and Bytes are the arithmetic of a run and what it moves, where both are 0 those of its operations' plans. They are for
	// rates, and for refusing times that no such card can reach.
	FLOPs, Bytes int64
}

// Timing is what a Timer measured.
type Timing struct {
	Device   string
	Modelled bool            // a simulated GPU's time
	Hosted   bool            // the host's processor did the work, in the calls that asked for it
	Runs     []time.Duration // of the device, in their order
	Median   time.Duration
	Lower    time.Duration // quartile: a quarter of the runs took less
	Upper    time.Duration // quartile: a quarter took more
	Enqueue  time.Duration // median time in which the host asked for a run
	FLOPs    int64         // of a run
	Bytes    int64
}

// Time runs f as often as t says, each time in a block of its own, and measures it. What f launches on queues of its own is not
// measured. The error says why there is no time, or why it cannot be true.
func (t Timer) Time(env *tensor.Env, f func(env *tensor.Env)) (*Timing, error) {
	if min(t.Warmup, t.Runs) < 0 || min(t.FLOPs, t.Bytes) < 0 {
		return nil, fmt.Errorf("prof: Timer: %d warm-up runs, %d runs, %d FLOPs, %d bytes: these are 0 or more", t.Warmup, t.Runs, t.FLOPs, t.Bytes)
	}
	d := env.Device()
	if !d.Computes() {
		return nil, advice.Failf("time it on cpu, on a card, or as modelled on sim:CARD", "prof: %s computes nothing, and takes no time", d.Name())
	}
	if t.Warmup == 0 {
		t.Warmup = 3
	}
	if t.Runs == 0 {
		t.Runs = 20
	}
	_, modelled := d.Clock()
	out := &Timing{Device: d.Name(), Modelled: modelled, Hosted: d.OnHost(), FLOPs: t.FLOPs, Bytes: t.Bytes}
	run := func() { env.Do(func(env *tensor.Env) *tensor.Tensor { f(env); return nil }) }
	out.warm(d, run, t.Warmup)
	env.Sync()
	if err := out.measure(env, run, t.Runs); err != nil {
		return nil, fmt.Errorf("prof: %s does not tell how long it worked: %w", d.Name(), err)
	}
	return out, out.possible(d)
}

// warm makes runs that do not count, and counts what the last of them does.
func (out *Timing) warm(d *tensor.Device, run func(), n int) {
	for range n - 1 {
		run()
	}
	var tally device.Tally
	func() {
		defer d.Observe(tally.Observe, device.KindLaunch, device.KindFill, device.KindCopy)()
		run()
	}()
	if all, _ := tally.Work(); out.FLOPs == 0 && out.Bytes == 0 {
		out.FLOPs, out.Bytes = all.FLOPs, all.Read+all.Written+all.Copied
	}
}

// measure makes the runs that count. Nobody waits between them, so that the device has the next one when it ends one.
func (out *Timing) measure(env *tensor.Env, run func(), n int) error {
	var marks []device.Span
	var enqueue []time.Duration
	for range n {
		before, err := env.Stamp()
		at := env.Device().Now()
		run()
		enqueue = append(enqueue, env.Device().Now()-at)
		after, err2 := env.Stamp()
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		marks = append(marks, device.Span{Began: before, Ended: after})
	}
	env.Sync()
	out.Runs = enqueue
	if !out.Hosted {
		out.Runs = nil
		for _, m := range marks {
			d, err := m.Ended.Since(m.Began)
			if err != nil {
				return err
			}
			out.Runs = append(out.Runs, d)
		}
		_, out.Enqueue, _ = quartiles(enqueue)
	}
	out.Lower, out.Median, out.Upper = quartiles(out.Runs)
	return nil
}

// quartiles are a quarter, half and three quarters of the way through d, between two of them in proportion.
func quartiles(d []time.Duration) (lower, median, upper time.Duration) {
	s := slices.Sorted(slices.Values(d))
	at := func(quarter int) time.Duration {
		i, rest := quarter*(len(s)-1)/4, quarter*(len(s)-1)%4
		if rest == 0 {
			return s[i]
		}
		return s[i] + (s[i+1]-s[i])*time.Duration(rest)/4
	}
	return at(1), at(2), at(3)
}

// limits are what no work on a device goes beyond: operations a second, and bytes a second from the nearest memory that all its cores
// have; of is whose they are, and near what that memory is called.
type limits struct {
	flops, bytes float64
	of, near     string
}

// limitsOf are those of a card by its published figures, and of the host's processor; false where the card is not known.
func limitsOf(d *tensor.Device) (limits, bool) {
	if d.OnHost() {
		return hostLimits(cpufeat.Describe()), true
	}
	own := Device{Properties: d.Properties()}
	card, known := own.card()
	if !known {
		return limits{}, false
	}
	peak := card.Vector()
	for i := range cards.Types {
		peak = max(peak, card.TensorPeak(i))
	}
	return limits{peak, card.L2Bandwidth(), card.Model, "L2 cache"}, true
}

// Of a core, where the processor's own figures are not known: no core does more than the widest does.
const (
	widestCore = 128  // floating-point operations a clock: two units for products of pairs of bfloat16, 512 bits
	nearestL1  = 192  // bytes a clock: two loads and a store of 512 bits
	fastest    = 6200 // MHz, the highest that a processor is sold with
)

// hostLimits are those of all threads of a processor at its highest clock, by the table of processors where it is there.
func hostLimits(p cpufeat.Processor) limits {
	clock := float64(fastest)
	if c, ok := cards.MatchCPU(p.Model); ok {
		clock = float64(c.Boost)
	}
	rate := p.ID.Rate()
	flops := max(rate.AVX2, rate.AVX512, rate.Pairs)
	if flops == 0 {
		flops = widestCore
	}
	all := 1e6 * clock * float64(max(p.Threads, 1))
	return limits{all * float64(flops), all * nearestL1, cmp.Or(p.Model, "this processor"), "L1 cache"}
}

// possible is an error where the work is more than the device can do in the time.
func (out *Timing) possible(d *tensor.Device) error {
	most, known := limitsOf(d)
	if !known {
		return nil
	}
	const hint = "check FLOPs and Bytes, and that all the work is launched on the env's queue"
	if flops := rate(out.FLOPs, out.Median); flops > most.flops {
		return advice.Failf(hint, "prof: %.4g FLOP in %v would be %.4g FLOP/s; %s does %.4g at most", float64(out.FLOPs), out.Median, flops, most.of, most.flops)
	}
	if bytes := rate(out.Bytes, out.Median); bytes > most.bytes {
		return advice.Failf(hint, "prof: %.4g bytes in %v would be %.4g B/s; even the %s of %s gives %.4g", float64(out.Bytes), out.Median, bytes, most.near, most.of, most.bytes)
	}
	return nil
}

// noisy is the spread, of the median, from which runs of one program do not compare: as torch.utils.benchmark warns.
const noisy = 0.1

// String says the median with its quartiles, the rates, and what a clock on the host would have said.
func (t *Timing) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s", render.Duration(t.Median), t.Device)
	if t.Modelled {
		b.WriteString(", as modelled")
	}
	fmt.Fprintf(&b, ", quartiles %s and %s of %d runs", render.Duration(t.Lower), render.Duration(t.Upper), len(t.Runs))
	if t.FLOPs > 0 {
		fmt.Fprintf(&b, "; %s GFLOP/s", number(rate(t.FLOPs, t.Median)/1e9))
	}
	if t.Bytes > 0 {
		fmt.Fprintf(&b, "; %s GB/s", number(rate(t.Bytes, t.Median)/1e9))
	}
	if fraction(t.Upper-t.Lower, t.Median) > noisy {
		fmt.Fprintf(&b, "\nhalf of the runs lie %s of the median apart: something else runs on the machine", render.Percent(fraction(t.Upper-t.Lower, t.Median)))
	}
	switch {
	case t.Hosted:
	case t.Enqueue >= t.Median:
		fmt.Fprintf(&b, "\nthe host takes %s to ask for a run, no less than that: the device waits for it, and its own time is shorter", render.Duration(t.Enqueue))
	default:
		fmt.Fprintf(&b, "\nthe host has asked for a run after %s: a clock around the calls would say that, %.1f times too little", render.Duration(t.Enqueue),
			float64(t.Median)/float64(max(t.Enqueue, 1)))
	}
	return b.String()
}
