package tensor

import "github.com/warpline-ml/warpline/internal/rng"

// keyring is how the random keys of a step follow from the paths that it draws from, so that each run draws what the step
// would have drawn.
type keyring struct {
	step  *recording
	paths []drawn         // that began outside of the step; the first is the batch's
	keys  []derived       // each after those that it follows from
	index map[rng.Key]int // of keys that the recorded run had
	now   []rng.Key       // keys of the run under way
}

// drawn is a path that a step draws from.
type drawn struct {
	path  *stream
	start uint64 // draws before the step
	count uint64 // draws of the step
}

// derived is a key: a path's own, a constant, or one that something was folded into.
type derived struct {
	kind keyKind
	from int // a path; or a key, which something is folded into
	fold uint64
	path int // of a draw: whose number, fold being that of the step's draws before
}

type keyKind uint8

const (
	keyOf     keyKind = iota // a path's
	keyConst                 // fold itself
	keyFolded                // from and fold
	keyDrawn                 // from and the number of a draw
)

// open begins the keys of a step with the batch's path.
func (r *keyring) open(step *recording, batch *stream) {
	r.step, r.index = step, map[rng.Key]int{}
	r.enter(batch)
}

// enter is the number of a path from outside.
func (r *keyring) enter(s *stream) int {
	for i := range r.paths {
		if r.paths[i].path == s {
			return i
		}
	}
	r.paths = append(r.paths, drawn{path: s, start: s.draws.Load()})
	r.add(s.key, derived{kind: keyOf, from: len(r.paths) - 1})
	return len(r.paths) - 1
}

func (r *keyring) add(k rng.Key, d derived) int {
	if i, ok := r.index[k]; ok {
		return i
	}
	r.keys = append(r.keys, d)
	r.index[k] = len(r.keys) - 1
	return len(r.keys) - 1
}

// of is the number of a key that a path leads to.
func (r *keyring) of(s *stream, k rng.Key) int {
	if s.step != r.step {
		r.enter(s)
	}
	return r.add(k, derived{kind: keyConst, fold: uint64(k)})
}

// folded notes that k is from with something folded in, on a path.
func (r *keyring) folded(s *stream, from rng.Key, fold uint64, k rng.Key) {
	r.add(k, derived{kind: keyFolded, from: r.of(s, from), fold: fold})
}

// drawn notes the key of a path's draw, the n-th.
func (r *keyring) drawn(s *stream, n uint64, k rng.Key) {
	draws := rng.Fold(s.key, drawPath)
	if s.step == r.step {
		r.folded(s, s.key, drawPath, draws)
		r.folded(s, draws, n, k)
		return
	}
	i := r.enter(s)
	p := &r.paths[i]
	if p.count == 0 {
		p.start = n - 1
	}
	p.count = max(p.count, n-p.start)
	r.folded(s, s.key, drawPath, draws)
	r.add(k, derived{kind: keyDrawn, from: r.index[draws], fold: n - p.start, path: i})
}

// find is the number of a key, -1 for one that is the same in each run.
func (r *keyring) find(k rng.Key) int {
	if i, ok := r.index[k]; ok {
		return i
	}
	return -1
}

// turn computes the keys of a run for a batch with a path, and moves the paths on.
func (r *keyring) turn(batch *stream) {
	r.paths[0].path = batch
	for i := range r.paths {
		p := &r.paths[i]
		p.start = p.path.draws.Add(p.count) - p.count
	}
	for i := range r.keys {
		switch d := &r.keys[i]; d.kind {
		case keyOf:
			r.now[i] = r.paths[d.from].path.key
		case keyFolded:
			r.now[i] = rng.Fold(r.now[d.from], d.fold)
		case keyDrawn:
			r.now[i] = rng.Fold(r.now[d.from], r.paths[d.path].start+d.fold)
		}
	}
}

// close ends the recording: constants have their place.
func (r *keyring) close() {
	r.now = make([]rng.Key, len(r.keys))
	for i, d := range r.keys {
		if d.kind == keyConst {
			r.now[i] = rng.Key(d.fold)
		}
	}
	r.step, r.index = nil, nil
}
