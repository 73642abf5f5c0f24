package nn

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// KVCache keeps the keys and values of an attention layer's positions so far, so that those that follow compute only their own:
// for writing token by token. Each layer has one of its own. It is used without gradients.
type KVCache struct {
	env    *tensor.Env
	k, v   *tensor.Tensor // [n, heads, room, width], nil at first
	n, max int
}

// NewKVCache makes an empty cache of at most so many positions. Its memory is env's, once the first are added.
func NewKVCache(env *tensor.Env, positions int) *KVCache {
	if positions < 1 {
		tensor.Raise("nn.NewKVCache", "as many as the longest text has, a model's context for example", "%d positions", positions)
	}
	return &KVCache{env: env.NoGrad(), max: positions}
}

// Len is the number of positions that the cache has.
func (c *KVCache) Len() int { return c.n }

// String tells how full the cache is.
func (c *KVCache) String() string {
	if c.k == nil {
		return fmt.Sprintf("cache of %d positions, empty", c.max)
	}
	return fmt.Sprintf("cache of %d positions, %d taken, keys %v", c.max, c.n, c.k.Shape())
}

// Truncate forgets the positions from n on; 0 begins again.
func (c *KVCache) Truncate(n int) {
	if n < 0 || n > c.n {
		tensor.Raise("nn.KVCache", "positions are forgotten from the end", "%d positions are to stay of %d", n, c.n)
	}
	c.n = n
}

// Add puts k[n, heads, t, width] and v, of their own width, behind what is there, and returns all of both: views, which the
// next Add makes no longer.
func (c *KVCache) Add(k, v *tensor.Tensor) (keys, values *tensor.Tensor) {
	c.check(k, v)
	t := k.Dim(2)
	if c.k == nil {
		room := func(x *tensor.Tensor) *tensor.Tensor {
			return c.env.FullOf(x.DType(), 0, x.Dim(0), x.Dim(1), c.max, x.Dim(3))
		}
		c.k, c.v = room(k), room(v)
	}
	if t > 0 {
		c.k.Slice(2, c.n, c.n+t).CopyInPlace(k)
		c.v.Slice(2, c.n, c.n+t).CopyInPlace(v)
	}
	c.n += t
	return c.k.Slice(2, 0, c.n), c.v.Slice(2, 0, c.n)
}

// check refuses what does not fit what is there.
func (c *KVCache) check(k, v *tensor.Tensor) {
	if c.env == nil {
		tensor.Raise("nn.KVCache", "make it with nn.NewKVCache", "the cache is a zero value")
	}
	if k.Recorded() || v.Recorded() {
		tensor.Raise("nn.KVCache", "run the model in env.NoGrad(); training takes whole sequences", "keys or values carry a graph")
	}
	if k.Rank() != 4 || v.Rank() != 4 || !slices.Equal(k.Shape()[:3], v.Shape()[:3]) {
		tensor.Raise("nn.KVCache", "both are [samples, heads, positions, width]", "keys %v, values %v", k.Shape(), v.Shape())
	}
	if c.n+k.Dim(2) > c.max {
		tensor.Raise("nn.KVCache", "make a larger cache, or begin again with the last positions", "%d positions more than %d, and room for %d", k.Dim(2), c.n, c.max)
	}
	for _, p := range [][2]*tensor.Tensor{{c.k, k}, {c.v, v}} {
		if was, now := p[0], p[1]; was != nil && (was.DType() != now.DType() || was.Dim(0) != now.Dim(0) || was.Dim(1) != now.Dim(1) || was.Dim(3) != now.Dim(3)) {
			tensor.Raise("nn.KVCache", "samples, heads, width and dtype stay", "%s behind %s", now.Info(), was.Info())
		}
	}
}
