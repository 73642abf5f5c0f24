// Package prof shows where the time of a program goes: by operation, by module and by line of the program, on the host and
// on the device.
//
//	p := prof.New(prof.Config{Wait: 1, Warmup: 1, Active: 3})
//	env = env.Profiled(p)
//	for step := range steps {
//		train(env)
//		p.Step()
//	}
//	p.Stop()
//	p.Last().WriteTable(os.Stdout, prof.Table{By: prof.Module})
//	err := p.Last().WriteTrace("trace.json.gz")
//
// A profiler observes the work that devices are asked for (launches, copies, waits, ranges) with the line of the program,
// the module and the number of each operation. It calls nothing in the program's way: while no window is open, nobody
// observes, and the program runs as it does without a profiler. Times on the device are the device's own; on the CPU, where
// work runs in the call that asks for it, they are the host's.
package prof

import (
	"fmt"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/tensor"
)

// Config is when a profiler looks, in steps of the program as Step counts them: it waits, warms up, records Active steps,
// and begins again. The zero Config records all from the first env to Stop.
type Config struct {
	Skip   int // steps before the first round
	Wait   int // steps of a round in which nothing is observed
	Warmup int // steps that are observed and thrown away: the first ones of a round also pay for what is made once
	Active int // steps that are recorded; 0: all, without rounds
	Repeat int // rounds; 0: until Stop

	// Memory records what is allocated and reserved too, for the trace's counters and TensorBoard's view of memory. Each block that
	// changes hands then costs the host some hundred nanoseconds, as its line is looked up.
	Memory bool

	// Ready, where it is set, is called by Step or Stop at the end of each round with what was recorded.
	Ready func(*Profile)
	// Events is how many events a round keeps at most, 1<<20 if 0. What comes later is counted, not kept.
	Events int
}

// Profiler records windows of a program's work. Its methods may be called by several goroutines at once, while devices work.
type Profiler struct {
	cfg Config

	mu      sync.Mutex
	step    int
	phase   phase
	devices []*tensor.Device
	rec     *recorder // of the window, nil outside
	counts  []census  // of its steps, at their ends
	last    *Profile
	stopped bool
}

// New returns a profiler in its first step. It panics when a number is negative, or when Active is missing where others are
// given.
func New(cfg Config) *Profiler {
	if min(cfg.Skip, cfg.Wait, cfg.Warmup, cfg.Active, cfg.Repeat, cfg.Events) < 0 {
		panic(fmt.Sprintf("prof.New: %+v: numbers of steps and events are 0 or more", cfg))
	}
	if cfg.Active == 0 && cfg.Skip+cfg.Wait+cfg.Warmup+cfg.Repeat > 0 {
		panic("prof.New: a schedule needs Active steps to record")
	}
	if cfg.Events == 0 {
		cfg.Events = 1 << 20
	}
	p := &Profiler{cfg: cfg}
	p.phase = cfg.phase(0)
	return p
}

// Profile implements [tensor.Profiler]: from now on d's work is recorded in p's windows. A device is taken once.
func (p *Profiler) Profile(d *tensor.Device) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.devices, d) {
		return
	}
	p.devices = append(p.devices, d)
	if p.phase != idle && !p.stopped {
		if p.rec == nil {
			p.begin()
			return
		}
		p.rec.observe(d)
	}
}

// Step tells p that a step of the program has ended.
func (p *Profiler) Step() { p.tell(p.advance()) }

// tell hands what a round recorded, if one has ended, to who waits for it.
func (p *Profiler) tell(done *Profile) {
	if done != nil && p.cfg.Ready != nil {
		p.cfg.Ready(done)
	}
}

// advance goes on to the next step, and returns what a round that ended recorded.
func (p *Profiler) advance() (done *Profile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	if p.phase == active || p.phase == last {
		p.count()
	}
	p.step++
	before, after := p.phase, p.cfg.phase(p.step)
	p.phase = after
	switch {
	case before == last:
		done = p.finish()
		if after != idle {
			p.begin()
		}
	case before == warmup && after != warmup: // what warming up recorded goes
		p.discard()
		p.begin()
	case before == idle && after != idle:
		p.begin()
	case p.rec != nil:
		p.rec.step(p.step)
	}
	return done
}

// Stop ends the window that is open, and p. What was recorded of a round that is not whole counts: the devices are waited for. See
// [Profiler.Discard].
func (p *Profiler) Stop() { p.tell(p.end()) }

// end is Stop, but for telling.
func (p *Profiler) end() *Profile {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped && (p.phase == active || p.phase == last) {
		p.stopped = true
		return p.finish()
	}
	p.stopped = true
	p.discard()
	return nil
}

// Discard ends p as Stop does, but throws the window away that is open. It waits for no device, so that it is safe where one has
// failed.
func (p *Profiler) Discard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.discard()
}

// Last is what the latest window recorded; nil before the first has ended.
func (p *Profiler) Last() *Profile {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// begin opens a window, if there is a device to observe.
func (p *Profiler) begin() {
	if len(p.devices) == 0 {
		return
	}
	p.counts = nil
	rec := newRecorder(p.cfg.Events, p.step)
	rec.memory = p.cfg.Memory
	defer func() {
		if p.rec != rec { // a device has failed: nobody observes the others
			rec.close()
		}
	}()
	for _, d := range p.devices {
		rec.observe(d)
	}
	p.rec = rec
}

// finish closes the window and resolves its times. A device that has failed panics here; the window is gone then.
func (p *Profiler) finish() *Profile {
	rec := p.rec
	if rec == nil {
		return nil
	}
	p.rec = nil
	done := rec.profile()
	done.growing, done.cold = growth(p.counts), done.steps[0].step == 0
	p.last = done
	return done
}

func (p *Profiler) discard() {
	if p.rec != nil {
		p.rec.close()
		p.rec = nil
	}
}

// Range gives what f does in its env a name, for tables and traces; it is [tensor.Env.Range] for a part of a program.
func Range(env *tensor.Env, name string, f func(env *tensor.Env)) {
	inner, end := env.Range(name)
	defer end()
	f(inner)
}
