package nn

import "github.com/warpline-ml/warpline/tensor"

// inBlocks is Forward where blocks are run apart from each other. The blocks are modules of the program and of package
// model, those that are made of others, and of layers each one with a product, such as Linear and Conv2d, with those that
// follow it up to the next. One layer alone keeps little but what it is given: it is no block.
func (s Sequential) inBlocks(x *tensor.Tensor) *tensor.Tensor {
	var c chain
	for i := 0; i < len(s); {
		from, to := i, s.blockEnd(i)
		i = to
		if to-from == 1 && !isBlock(s[from]) {
			x = c.add(x, s.step(from), isLibrary(s[from]))
			continue
		}
		x = c.add(x, func(x *tensor.Tensor) *tensor.Tensor {
			return tensor.RunPart(tensor.PartBlock, x, func() string { return s.place(s.named(from, to)) }, func(x *tensor.Tensor) *tensor.Tensor {
				return s.chain(x, from, to)
			})
		}, isLibrary(s[from]))
	}
	return tensor.Chain(x, c.steps...)
}

// blockEnd is where the block ends that begins with module i.
func (s Sequential) blockEnd(i int) int {
	s.given(i)
	if !isLayer(s[i]) {
		return i + 1
	}
	products := 0
	for ; i < len(s) && s[i] != nil && isLayer(s[i]); i++ {
		if hasProduct(s[i]) {
			if products++; products > 1 {
				break
			}
		}
	}
	return i
}

// named is the module that a block has its path from: the first with a product, or the first.
func (s Sequential) named(from, to int) int {
	for i := from; i < to; i++ {
		if hasProduct(s[i]) {
			return i
		}
	}
	return from
}

// isLayer tells a layer of this package from what is made of others, which is a block or has blocks of its own.
func isLayer(m Module) bool {
	switch m.(type) {
	case Sequential, *Sequential, wrapped, nil:
		return false
	}
	return isOf(m, "/nn")
}

// isBlock tells a module that is a block by itself. One that is recomputed anyway is none.
func isBlock(m Module) bool {
	switch m := m.(type) {
	case Sequential, *Sequential, nil:
		return false
	case wrapped:
		return !m.again
	}
	return !isLayer(m)
}

// multiplier is a layer with products of matrices, which it counts for an input and its result.
type multiplier interface {
	products(x, y *tensor.Tensor) int
}

func hasProduct(m Module) bool {
	_, ok := m.(multiplier)
	return ok
}
