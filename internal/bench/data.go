package bench

import (
	"iter"
	"math/rand/v2"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/tensor"
)

// The sets are as large as MNIST, or a million tokens.
const (
	pictures   = 60_000
	side       = 28
	texts      = 1 << 20
	textLength = 256
)

// loaders are the cases of data: batches a second with two workers.
var loaders = []*Case{
	loader("digits", "n digits a batch, of numbers in memory", 128, side*side*4, func(env *tensor.Env, c data.Config) (iter.Seq2[*data.Pair, error], error) {
		x, y := drawnDigits()
		return data.Batches(env, data.InMemory(x, []int{1, side, side}, y), c), nil
	}),
	loader("drawing", "n digits a batch, drawn when they are asked for", 128, side*side*4, func(env *tensor.Env, c data.Config) (iter.Seq2[*data.Pair, error], error) {
		set, _ := digits.Split(pictures, 1)
		return data.Batches(env, set, c), nil
	}),
	loader("idx", "n pictures of bytes a batch, as of MNIST's files", 128, side*side*4, func(env *tensor.Env, c data.Config) (iter.Seq2[*data.Pair, error], error) {
		set, err := data.Pictures(randomBytes(pictures*side*side), []int{1, side, side}, make([]int64, pictures))
		return data.Batches(env, set, c), err
	}),
	loader("tokens", "n texts of 256 tokens a batch, from a million", 16, 2*textLength*8, func(env *tensor.Env, c data.Config) (iter.Seq2[*tokens.Batch, error], error) {
		set, err := tokens.New("random", make([]uint16, texts), 65).Windows(textLength)
		return data.Batches(env, set, c), err
	}),
}

// drawnDigits are the arrays that another program would read from a file.
func drawnDigits() (x []float32, y []int64) {
	x, y = make([]float32, pictures*side*side), make([]int64, pictures)
	par.For(pictures, 128, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = int64(digits.Draw(x[i*side*side:][:side*side], digits.DefaultSeed, i))
		}
	})
	return x, y
}

func randomBytes(n int) []byte {
	r, b := rand.New(rand.NewPCG(1, 2)), make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// perTurn is the number of batches of a turn.
const perTurn = 50

// loader is a case of batches of n samples of so many bytes, in random order.
func loader[B any](name, help string, n, bytes int, open func(env *tensor.Env, c data.Config) (iter.Seq2[B, error], error)) *Case {
	return &Case{Bench: "data", Name: name, Help: help, Sizes: []int{n}, Unit: "batches/s", Only: single, Host: true,
		Make: func(env *tensor.Env, n int, _ dtype.DType) (Work, error) {
			batches, err := open(env, data.Config{Size: n, Draw: true, Steps: largest, Workers: 2})
			if err != nil {
				return Work{}, err
			}
			next, stop := iter.Pull2(batches)
			return Work{Amount: perTurn, Bytes: float64(2 * perTurn * n * bytes), Close: stop, Turn: func() {
				for range perTurn {
					if _, err, ok := next(); err != nil || !ok {
						tensor.Raise("data", "try another size", "the loader ended: %v", err)
					}
				}
			}}, nil
		}}
}
