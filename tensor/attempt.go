package tensor

// Attempt runs f in a scope of its own that draws from e's random path. When memory runs out in it, what it has made is released,
// the path is set back to where it was, so that another attempt draws the same numbers, and the error is returned. Like [Env.Try]
// it does not undo gradients (opt.Discard does) or writes to parameters and buffers. Other errors go on as panics.
func (e *Env) Attempt(f func(*Env)) (oom *OOMError) {
	uncapturable("Attempt", "attempt the whole step, or choose before it what fits", "a recording has no other way to go")
	path := e.stream()
	drawn := path.draws.Load()
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *OOMError:
			path.draws.Store(drawn)
			oom = p
		default:
			panic(p)
		}
	}()
	s := newScope(e.dev, e.live(), 0)
	s.block, s.random = true, path
	defer s.End(blockEnd)
	f(e.with(func(c *Env) { c.scope, c.seeded = s, nil }))
	return nil
}
