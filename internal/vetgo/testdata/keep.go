// Package main keeps values in many ways.
package main

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

type record struct {
	step int
	loss *tensor.Tensor
}

type trainer struct {
	env    *tensor.Env
	model  nn.Sequential
	opt    optim.Optimizer
	set    data.Source[data.Pair]
	losses []*tensor.Tensor
	last   *tensor.Tensor
}

func (t *trainer) fields() error {
	for b, err := range data.Batches(t.env, t.set, data.Config{Size: 8}) {
		if err != nil {
			return err
		}
		loss := t.loss(b)
		t.losses = append(t.losses, loss) // want: R06
		t.last = loss                     // near: R06 V27, nobody reads it here
		loss.Backward()
		t.opt.Step()
	}
	return nil
}

func (t *trainer) loss(b *data.Pair) *tensor.Tensor {
	return nn.CrossEntropy(t.model.Forward(b.X), b.Y)
}

func (t *trainer) maps() (map[int]*tensor.Tensor, error) {
	scores, step := map[int]*tensor.Tensor{}, 0
	for b, err := range data.Batches(t.env, t.set, data.Config{Size: 8}) {
		if err != nil {
			return nil, err
		}
		step++
		y := t.model.Forward(b.X)
		scores[step] = y // want: R06
		scores[0] = y.Keep()
		nn.CrossEntropy(y, b.Y).Backward()
		t.opt.Step()
	}
	return scores, nil
}

func (t *trainer) structs() (all []record) {
	for b, err := range data.Batches(t.env, t.set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		loss := t.loss(b)
		all = append(all, record{len(all), loss.Detach()}) // want: R06
		loss.Backward()
		t.opt.Step()
	}
	return all
}

func (t *trainer) kept() (all []record, numbers []float64) {
	var total metric
	for b, err := range data.Batches(t.env, t.set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		loss := t.loss(b)
		kept := loss.Keep()
		all = append(all, record{len(all), kept})          // near: R06
		outs := []*tensor.Tensor{}                         //
		outs = append(outs, b.X)                           // near: R06, of this batch
		numbers = append(numbers, float64(outs[0].Rank())) // near: R06
		total.add(loss)
		loss.Backward()
		t.opt.Step()
	}
	return all, numbers
}

type metric struct{ n int }

func (m *metric) add(*tensor.Tensor) { m.n++ }

func (t *trainer) sums() *tensor.Tensor {
	total := t.env.Zeros()
	for b, err := range data.Batches(t.env, t.set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		loss := t.loss(b)
		total = total.Add(loss) // want: R06
		loss.Backward()
		t.opt.Step()
	}
	return total
}

func sumsInPlace(model nn.Sequential, opt optim.Optimizer) {
	env := tensor.Best()
	total, running := env.Zeros(), env.Zeros()
	for range 100 {
		loss := model.Forward(env.Randn(8, 4)).Square().Mean()
		total.AddInPlace(loss)            // want: R06
		running.AddInPlace(loss.Detach()) // near: R06
		loss.Backward()
		opt.Step()
	}
	fmt.Println(total, running)
}

// unrolled adds up before it goes backward.
func unrolled(model nn.Sequential, opt optim.Optimizer) {
	env := tensor.Best()
	for range 100 {
		total := env.Zeros()
		var outs []*tensor.Tensor
		for range 4 {
			y := model.Forward(env.Randn(8, 4))
			total = total.Add(y.Square().Mean()) // near: R06
			outs = append(outs, y)               // near: R06
		}
		total.Add(tensor.Stack(0, outs...).Mean()).Backward()
		opt.Step()
	}
}

// A state that goes on.

type cell struct{ In, Rec, Out *nn.Linear }

func (c *cell) next(x, state *tensor.Tensor) *tensor.Tensor {
	return c.In.Forward(x).Add(c.Rec.Forward(state)).Tanh()
}

func (c *cell) batches(env *tensor.Env, set data.Source[data.Pair], opt optim.Optimizer) error {
	var state *tensor.Tensor
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) {
		if err != nil {
			return err
		}
		if state == nil {
			state = b.Env.Zeros(8, 4)
		}
		next := c.next(b.X, state)
		nn.CrossEntropy(c.Out.Forward(next), b.Y).Backward()
		opt.Step()
		state = next.Detach() // want: V02
	}
	return nil
}

func (c *cell) steps(opt optim.Optimizer) {
	env := tensor.Best()
	state, other := env.Zeros(8, 4), env.Zeros(8, 4)
	for range 100 {
		state = c.next(env.Randn(8, 4), state)                                 // near: V02, what it is given is not known to be recorded
		other = c.In.Forward(env.Randn(8, 4)).Add(c.Rec.Forward(other)).Tanh() // want: V02
		c.Out.Forward(other).Square().Mean().Backward()
		opt.Step()
	}
}

func (c *cell) right(opt optim.Optimizer) {
	env := tensor.Best()
	state := env.Zeros(8, 4)
	for range 100 {
		next := c.In.Forward(env.Randn(8, 4)).Add(c.Rec.Forward(state)).Tanh()
		loss := c.Out.Forward(next).Square().Mean()
		state = next.Detach() // near: V02
		loss.Backward()
		opt.Step()
	}
	for range 100 {
		h := env.Zeros(8, 4)
		for range 5 {
			h = c.In.Forward(env.Randn(8, 4)).Add(c.Rec.Forward(h)).Tanh() // near: V02, one walk back through all
		}
		h.Square().Mean().Backward()
		opt.Step()
	}
}

func (c *cell) slot(env *tensor.Env, set data.Source[data.Pair], opt optim.Optimizer) error {
	var slot tensor.Slot
	slot.Set(env.Zeros(8, 4))
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) {
		if err != nil {
			return err
		}
		state := c.In.Forward(b.X).Add(c.Rec.Forward(slot.Get(b.Env))).Tanh()
		loss := nn.CrossEntropy(c.Out.Forward(state), b.Y)
		slot.Set(state) // near: V28
		loss.Backward()
		fmt.Println(state.Shape()) // near: V28, no value is read
		opt.Step()
	}
	return nil
}

func (c *cell) late(env *tensor.Env, set data.Source[data.Pair], opt optim.Optimizer) (states []*tensor.Tensor, err error) {
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) {
		if err != nil {
			return nil, err
		}
		hidden := c.In.Forward(b.X).ReLU()
		scores := c.Out.Forward(hidden)
		loss := nn.CrossEntropy(scores, b.Y)
		loss.Backward()
		states = append(states, hidden.Keep()) // want: V28
		states = append(states, scores.Keep()) // near: V28, the head is there
		opt.Step()
	}
	return states, nil
}

func (c *cell) readLate(env *tensor.Env, set data.Source[data.Pair], scaler *optim.LossScaler, opt optim.Optimizer) error {
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) {
		if err != nil {
			return err
		}
		hidden := c.In.Forward(b.X)
		scaler.Backward(nn.CrossEntropy(c.Out.Forward(hidden), b.Y))
		mean := hidden.Mean() // want: V28
		scaler.Step(opt)
		mean.Later()
	}
	return nil
}

// Values behind their turns.

func lastBatch(env *tensor.Env, set data.Source[data.Pair]) {
	var last *data.Pair
	var x, kept *tensor.Tensor
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		last = b
		x = b.X.Reshape(-1)
		kept = b.X.Keep()
	}
	fmt.Println(last.X.Shape()) // want: V27
	fmt.Println(x.Mean())       // want: V27
	fmt.Println(kept.Mean())    // near: V27
}

func inBlock(env *tensor.Env) float64 {
	var inner, number *tensor.Tensor
	var value float64
	out := env.Do(func(env *tensor.Env) *tensor.Tensor {
		inner = env.Ones(4).Scale(2)
		number = inner.Sum().Keep()
		value = inner.Sum().Item()
		return inner.Mean()
	})
	fmt.Println(out, value, number) // near: V27
	return inner.Sum().Item()       // want: V27
}

func several(env *tensor.Env) float64 {
	var all, kept, some []*tensor.Tensor
	env.Do(func(env *tensor.Env) *tensor.Tensor {
		x := env.Ones(4)
		all = []*tensor.Tensor{x, x.Scale(2)}
		kept = []*tensor.Tensor{x, x.Scale(2)}
		for i, v := range kept {
			kept[i] = v.Keep()
		}
		some = []*tensor.Tensor{x, x.Scale(2)}
		some[0] = x.Keep()
		return x
	})
	var first, odd, never []*tensor.Tensor
	env.Do(func(env *tensor.Env) *tensor.Tensor {
		x := env.Ones(4)
		first = []*tensor.Tensor{x, x.Scale(2)}
		for range first {
			first[0] = x.Keep()
		}
		odd = []*tensor.Tensor{x, x.Scale(2)}
		for i, v := range odd {
			if i%2 == 0 {
				continue
			}
			odd[i] = v.Keep()
		}
		never = []*tensor.Tensor{x, x.Scale(2)}
		keep := func() {
			for i, v := range never {
				never[i] = v.Keep()
			}
		}
		_ = keep
		return x
	})
	fmt.Println(kept[1].Mean())  // near: V27
	fmt.Println(some[1].Mean())  // want: V27
	fmt.Println(first[1].Mean()) // want: V27
	fmt.Println(odd[0].Mean())   // want: V27
	fmt.Println(never[1].Mean()) // want: V27
	return all[1].Sum().Item()   // want: V27
}

func again(env *tensor.Env, set data.Source[data.Pair]) {
	var x *tensor.Tensor
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		x = b.X
		fmt.Println(x.Shape())
	}
	x = env.Ones(4)
	fmt.Println(x.Mean()) // near: V27
}

func main() {}

type notes struct{ values []*tensor.Tensor }

var all []*tensor.Tensor

func (l *notes) add(x *tensor.Tensor) { l.values = append(l.values, x) }

func (l *notes) addKept(x *tensor.Tensor) { l.values = append(l.values, x.Keep()) }

func (l *notes) addOwn(x *tensor.Tensor) {
	x = x.Keep()
	l.values = append(l.values, x)
}

func addTo(l *notes, name string, x *tensor.Tensor) { l.values = append(l.values, x) }

func addToAll(x *tensor.Tensor) { all = append(all, x) }

func collectsByCalls(env *tensor.Env, set data.Source[data.Pair]) {
	l, m := &notes{}, notes{}
	for b, err := range data.Batches(env, set, data.Config{Size: 2}) {
		if err != nil {
			return
		}
		loss := b.X.Mean()
		l.add(loss)          // want: R06
		addTo(&m, "m", loss) // want: R06
		addToAll(b.X)        // want: R06
		l.add(loss.Keep())   // near: R06
		l.addKept(loss)      // near: R06
		l.addOwn(loss)       // near: R06
		within := &notes{}   // of this turn alone
		within.add(b.X)      // near: R06
		addTo(within, "", loss)
	}
}
