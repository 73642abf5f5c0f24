package estimate

// advise says what would have to change for the kernel to take less, by what it is bound by.
func (t *clock) advise() {
	e, l := t.e, t.l
	say := func(format string, args ...any) { e.Change = append(e.Change, sentence(format, args...)) }
	if e.Busy < t.card.SMs {
		say("%d of %d multiprocessors have no block: more or smaller blocks", t.card.SMs-e.Busy, t.card.SMs)
	}
	switch e.Limiter {
	case Fixed:
		say("the launch itself takes longest: join the kernel with its neighbours, or capture them")
	case Latency:
		if why := Raise(t.sm, e.Occupancy, l.Registers, l.Threads, l.Shared); why != "" {
			say("%s, and more warps to wait side by side", why)
		}
		if l.GlobalWaits > 0 {
			say("loads of several elements before the first is used wait once, not each")
		}
	case Memory:
		if asked := l.Requested; l.Unique < asked/2 {
			say("%.3g sectors are requested for each that is touched, and L2 does not hold all: blocks that share data should run together", asked/l.Unique)
		}
	case L2:
		say("sectors are requested %.3g times each: keep them in registers or shared memory", l.Requested/max(l.Unique, 1))
	case Shared:
		say("fewer wavefronts: wider accesses, or a layout without the bank conflicts shown")
	case Tensor:
		if t.sm.Sync < 1 {
			say("mma.sync reaches %.0f %% of this card's tensor cores; wgmma is needed for more", 100*t.sm.Sync)
		}
	case Issue:
		say("fewer instructions: %s", e.Terms[0].Why)
	}
}
