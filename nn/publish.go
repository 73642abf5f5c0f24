package nn

import (
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/tensor"
)

// Published is a model that goroutines use while one trains it. They get copies of its weights and buffers, all of one
// step; [Published.Update] makes another copy the current one between steps. There are two copies: an update waits for
// whoever still uses the one before the current.
type Published[M any] struct {
	source  M
	current atomic.Pointer[published[M]]
	spare   *published[M] // of the training goroutine
}

// published is one copy.
type published[M any] struct {
	using sync.RWMutex
	model M
	from  [][2]*tensor.Tensor // of the source, and here
}

// Publish copies a model. Update and the model itself are for the goroutine that trains it.
func Publish[M any](model M) *Published[M] {
	p := &Published[M]{source: model, spare: copyOf(model)}
	p.current.Store(copyOf(model))
	return p
}

func copyOf[M any](model M) *published[M] {
	c := &published[M]{model: Clone(model)}
	Freeze(c.model, true)
	for from, to := range Zip(model, c.model) {
		c.from = append(c.from, [2]*tensor.Tensor{from, to})
	}
	return c
}

// Update publishes the weights and buffers as they are now. What is under way goes on with those that it began with. When
// it fails, because a tensor of the model went to another device, say, what was published stays.
func (p *Published[M]) Update() {
	next := p.spare
	next.fill()
	p.spare = p.current.Swap(next)
}

// fill copies the model's values once nobody uses the copy.
func (c *published[M]) fill() {
	c.using.Lock()
	defer c.using.Unlock()
	for _, t := range c.from {
		t[1].CopyInPlace(t[0].Detach())
	}
}

// Use runs f with the current copy, whose values do not change meanwhile. f reads it only, on data in evaluation: in
// training, batch norms write their statistics. Nothing of the copy may be kept.
func (p *Published[M]) Use(f func(model M)) {
	c := p.take()
	defer c.using.RUnlock()
	f(c.model)
}

// take is the current copy, locked for reading.
func (p *Published[M]) take() *published[M] {
	for {
		c := p.current.Load()
		c.using.RLock()
		if c == p.current.Load() {
			return c
		}
		c.using.RUnlock() // it is about to be written
	}
}

// Zip walks the parameters and buffers of two models of one kind side by side, tied ones once.
func Zip(a, b any) iter.Seq2[*tensor.Tensor, *tensor.Tensor] {
	all := func(entry) bool { return true }
	as, bs := walk("nn.Zip", a).each(all), walk("nn.Zip", b).each(all)
	if len(as) != len(bs) {
		tensor.Raise("nn.Zip", "give a model and its copy", "%d tensors beside %d", len(as), len(bs))
	}
	return func(yield func(a, b *tensor.Tensor) bool) {
		for i := range as {
			if as[i].path != bs[i].path {
				tensor.Raise("nn.Zip", "give a model and its copy", "%s beside %s", as[i].path, bs[i].path)
			}
			if !yield(as[i].t, bs[i].t) {
				return
			}
		}
	}
}

// String tells which kind of model is published.
func (p *Published[M]) String() string { return fmt.Sprintf("published %T", p.source) }
